"""`python -m tests.soak [--minutes 20] [--seed N] [kind ...]`: harm topics until the time is over; counts add up.

The next kind is the one that has had the least time for its share. With `--seed` each kind is run once, with that seed, and nothing
is counted. A failure is written down with its seed, the run goes on, and the exit is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.soak import record
from tests.soak.kinds import KINDS

MOST = 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []])
    told = parser.parse_args()
    kinds = told.kinds or list(KINDS)
    if told.seed is not None:
        for kind in kinds:
            print(kind, told.seed, KINDS[kind][0](told.seed), flush=True)
        return 0
    return soak(kinds, min(told.minutes, MOST) * 60)


def soak(kinds: list[str], seconds: float) -> int:
    began, failed = time.monotonic(), 0
    kept = record.load()
    run = record.begun(kept)
    while time.monotonic() - began < seconds:
        kind = min(kinds, key=lambda kind: kept["seconds"].get(kind, 0.0) / KINDS[kind][1])
        seed, start = kept["seeds"].get(kind, 1), time.monotonic()
        try:
            counts = KINDS[kind][0](seed)
            for what, count in counts.items():
                kept["totals"][what] = kept["totals"].get(what, 0) + count
            said = str(counts)
        except Exception as error:  # noqa: BLE001 - the outermost edge: whatever it is, it is written down
            failed, said = 1, f"{type(error).__name__}: {error}"
            kept["failures"].append(
                {"kind": kind, "seed": seed, "commit": run["commit"], "said": said.strip().splitlines()[-1][:300]}
            )
            traceback.print_exc()
        took = time.monotonic() - start
        print(f"{kind}, seed {seed}: {said[:500]} ({took:.1f} s)", flush=True)
        kept["seeds"][kind] = seed + 1
        kept["seconds"][kind] = round(kept["seconds"].get(kind, 0.0) + took, 1)
        run["seconds"] = round(time.monotonic() - began)
        record.save(kept)
    return failed


if __name__ == "__main__":
    sys.exit(main())
