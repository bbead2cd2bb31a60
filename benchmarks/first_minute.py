"""The first minute: what a new user waits for, from a fresh clone in an empty folder with empty caches.

| row              | what                                                                                             |
|------------------|--------------------------------------------------------------------------------------------------|
| `import`         | `import tidings`, bytecode there                                                                  |
| `readme`         | three subscriptions, `match`, `match(k)`, `publish` into a window, `top`, a keyed topic; empty cache |
| `docs`           | every call of a topic, packed and not (the acts of `tidings.warm.rehearsal`); empty cache          |
| `warm`           | `tidings warm`, which fills the cache                                                              |
| `readme, warm`   | the first again, in a new process                                                                 |
| `docs, warm`     | the second again                                                                                  |
| `run again`      | with `--full`: `tidings run` of the demo's job, restarted with nothing new                          |
| `make demo`, `make test` | with `--full`: whole, in the clone, with its own `.venv`                                    |

Seconds are of CPU time, but those of `clock` and `waited`, which say little on a busy machine; its load is stored with the result.
`beside` is what processes beside the user's took meanwhile; `longest` is the call that took longest. Rows but the last three use
this installation's packages and the clone's sources.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.report import provenance

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "results" / "first_minute.json"
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="make demo, make test and a restarted run, too: half an hour")
    parser.add_argument("--cold", action="store_true", help="only the rows before the cache is filled")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "tidings"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = measured(clone, Path(folder), options.cold) | (whole(clone, Path(folder)) if options.full else {})
    RESULT.write_text(json.dumps({**provenance(), "load": os.getloadavg(), "rows": rows}, indent=1) + "\n")


def measured(clone: Path, folder: Path, cold: bool) -> dict[str, Any]:
    settings = {
        **{name: value for name, value in os.environ.items() if name not in ("TIDINGS_KERNELS", "PYTHONDONTWRITEBYTECODE")},
        "PYTHONPATH": f"{clone / 'src'}{os.pathsep}{clone}",
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    rows: dict[str, Any] = {}

    def row(name: str, *command: str, fresh: bool = False, repeats: int = 1) -> None:
        if fresh:
            shutil.rmtree(folder / "cache", ignore_errors=True)
        rows[name] = [spent([sys.executable, *command], settings) for _ in range(repeats)]
        print(name, [{key: value for key, value in one.items() if key != "calls"} for one in rows[name]], flush=True)

    spent([sys.executable, "-c", "import tidings"], settings)
    row("import", "-c", "import tidings", repeats=REPEATS)
    row("readme", "-m", "benchmarks.first_calls", "readme", fresh=True)
    row("docs", "-m", "benchmarks.first_calls", "docs", fresh=True)
    if not cold:
        row("warm", "-m", "tidings", "warm")
        row("readme, warm", "-m", "benchmarks.first_calls", "readme", repeats=REPEATS)
        row("docs, warm", "-m", "benchmarks.first_calls", "docs")
    return rows


def whole(clone: Path, folder: Path) -> dict[str, Any]:
    """What make does in the clone, which then has an environment of its own."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "own cache")}
    settings = {name: value for name, value in settings.items() if name not in ("PYTHONPATH", "TIDINGS_KERNELS")}
    again = [str(clone / ".venv" / "bin" / "tidings"), "run", "demo/job.toml", "--set", "run.trigger=available-now"]
    rows = {}
    for name, command in (("make demo", ["make", "demo"]), ("run again", again), ("make test", ["make", "test"])):
        rows[name] = [spent(command, settings, clone)]
        print(name, rows[name], flush=True)
    return rows


def spent(command: list[str], settings: dict[str, str], folder: Path | None = None) -> dict[str, Any]:
    """A command's CPU and clock seconds, and what it says of itself in a last line of JSON."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=settings, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = done.stdout.strip().rpartition("\n")[2]
    own = json.loads(last) if last.startswith("{") else {}
    return {"cpu": round(cpu, 3), "clock": round(time.monotonic() - start, 3), **own}


if __name__ == "__main__":
    main()
