"""Top-k/w beside its peers, in one run: `python -m benchmarks.topkw [publications]`.

The paper's setting: 500 subscriptions, 1,000,000 uniform publications in the plane, a window of the last 20,000. Peers are
k-skyband buffers (exact) and the paper's own queues (sigma = 0.001), both compiled and both checking every subscription for
every publication. Process CPU time; the least of three for ours, one run of the peers. Raw results go to
benchmarks/results/topkw.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from experiments.baselines import checked_queues, skyband
from experiments.report import cpu_seconds, markdown, provenance
from experiments.topkw import BATCHES, SIGMA, hear, many_row, warm
from experiments.topkw_data import clustered, uniform
from tidings.rank.queue_length import queue_length

WINDOW, SUBSCRIPTIONS = 20_000, 500
RESULTS = Path(__file__).parent / "results" / "topkw.json"


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    warm()
    result = {"publications": n, "subscriptions": SUBSCRIPTIONS, "window": WINDOW, "sigma": SIGMA, "run": provenance()}
    result["setting"] = setting(n)
    print(f"\n{setting.__doc__}\n\n{markdown(result['setting'])}", flush=True)
    result["many"] = many()
    print(f"\n{many.__doc__}\n\n{markdown(result['many'])}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


def setting(n):
    """CPU seconds for the whole stream. Ours gives whole notifications, the peers only count them."""
    stream, centres = uniform(n), uniform(n + SUBSCRIPTIONS)[n:]
    rows = []
    for k in (1, 10, 100):
        runs = [hear(stream, centres, k, WINDOW) for _ in range(3)]
        bounded, heard, _ = hear(stream, centres, k, WINDOW, SIGMA)
        exact, told = min(run[0] for run in runs), runs[0][1]
        length = queue_length(k, SIGMA, WINDOW)
        buffers = cpu_seconds(lambda k=k: skyband.deliveries(stream, centres, k, WINDOW), 1)
        queues = cpu_seconds(lambda k=k, q=length: checked_queues.deliveries(stream, centres, k, q, WINDOW), 1)
        rows.append(
            {
                "k": k,
                "exact": exact,
                "bounded": bounded,
                "k-skyband": buffers,
                "paper's queues": queues,
                "k-skyband / exact": buffers / exact,
                "paper's queues / exact": queues / exact,
                "deliveries": int(told.sum()),
                "missed by bounded": float(1 - heard.sum() / told.sum()),
            }
        )
        print(rows[-1], flush=True)
    return rows


def many():
    """100,000 subscriptions, k = 10: CPU microseconds a publication, after the window has filled."""
    streams = (("uniform", uniform), ("clustered", clustered))
    return [{"stream": name, **many_row(make(WINDOW + BATCHES * 8192 + 201), 100_000, 10, WINDOW, 8192)} for name, make in streams]


if __name__ == "__main__":
    main()
