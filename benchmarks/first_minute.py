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
from collections.abc import Callable
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
    parser.add_argument("--child", choices=("readme", "docs"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(calls(options.child)))
        return
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
        print(name, rows[name], flush=True)

    spent([sys.executable, "-c", "import tidings"], settings)
    row("import", "-c", "import tidings", repeats=REPEATS)
    row("readme", "-m", "benchmarks.first_minute", "--child", "readme", fresh=True)
    row("docs", "-m", "benchmarks.first_minute", "--child", "docs", fresh=True)
    if not cold:
        row("warm", "-m", "tidings", "warm")
        row("readme, warm", "-m", "benchmarks.first_minute", "--child", "readme", repeats=REPEATS)
        row("docs, warm", "-m", "benchmarks.first_minute", "--child", "docs")
    return rows


def whole(clone: Path, folder: Path) -> dict[str, Any]:
    """What make does in the clone, which then has an environment of its own."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "own cache")}
    rows = {f"make {target}": [spent(["make", "-C", str(clone), target], settings)] for target in ("demo", "test")}
    job = next((clone / "demo").glob("*.toml"), None)
    if job is not None:
        again = [str(clone / ".venv" / "bin" / "tidings"), "run", str(job), "--set", "run.trigger=available-now"]
        rows["run again"] = [spent(again, settings)]
    return rows


def spent(command: list[str], settings: dict[str, str]) -> dict[str, Any]:
    """A command's CPU and clock seconds, and what it says of itself in a last line of JSON."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=settings, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = done.stdout.strip().rpartition("\n")[2]
    own = json.loads(last) if last.startswith("{") else {}
    return {"cpu": round(cpu, 3), "clock": round(time.monotonic() - start, 3), **own}


def calls(which: str) -> dict[str, Any]:
    """Every call of a path: CPU seconds of this process in all, and the one that was waited for longest."""
    import tidings  # noqa: F401 - what it costs is part of the path
    from tidings.compiling import beside

    imported = time.process_time()
    waited: dict[str, tuple[float, float]] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        cpu, clock = time.process_time(), time.monotonic()
        result = call()
        waited[name] = (time.process_time() - cpu, time.monotonic() - clock)
        return result

    (readme if which == "readme" else docs)(timed)
    total = time.process_time()
    beside.stop()
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    longest = max(waited, key=lambda name: waited[name][0])
    return {
        "import": round(imported, 3),
        "process": round(total, 3),
        "beside": round(others.ru_utime + others.ru_stime, 3),
        "longest": {"call": longest, "cpu": round(waited[longest][0], 3), "waited": round(waited[longest][1], 3)},
        "calls": {name: round(cpu, 4) for name, (cpu, _) in waited.items()},
    }


def readme(timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    import tidings as td

    near = "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"
    offer = {"id": "e1", "price": 3200, "brand": "Huawei", "place": (121.44, 36.16), "about": "P30 128GB"}
    flat = {"address": "Elm 1", "size": 60, "rent": 900}
    deals = td.Topic("deals", {"price": td.Number(0, 10_000), "brand": td.Category(), "place": td.Place(), "about": td.Words()})
    ann = f"price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30')) AND {near}"
    timed("subscribe", lambda: deals.subscribe("ann", ann, score=2.0))
    timed("subscribe to a list", lambda: deals.subscribe("bob", "price < 500", k=5, window="1 day", by="-price"))
    timed("subscribe again", lambda: deals.subscribe("cat", "brand = 'Huawei'"))
    timed("match", lambda: deals.match(offer))
    timed("match(k)", lambda: deals.match(offer, k=5))
    timed("explain", lambda: deals.explain(offer, "bob"))
    timed("publish", lambda: deals.publish(offer))
    timed("publish into a list", lambda: deals.publish({**offer, "id": "e2", "price": 100}))
    timed("top", lambda: deals.top("bob"))
    flats = td.Topic("flats", {"size": td.Number(0, 500), "rent": td.Number(0, 10_000)}, key="address")
    timed("subscribe, keyed", lambda: flats.subscribe("ann", "size BETWEEN 50 AND 80", k=1, by="-rent"))
    timed("publish, keyed", lambda: flats.publish(flat))


def docs(timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Each public call of the topics that the rehearsal makes, timed by name and number."""
    from tidings.topic.topic import Topic
    from tidings.warm import rehearsal

    numbers: dict[str, int] = {}

    class Timed(Topic):
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if name not in CALLS:
                return value
            numbers[name] = numbers.get(name, 0) + 1
            return lambda *given, **named: timed(f"{name} {numbers[name]}", lambda: value(*given, **named))

    rehearsal.Topic = Timed  # type: ignore[attr-defined]
    for act in rehearsal.ACTS:
        act()


CALLS = {"subscribe", "subscribe_many", "match", "match_batch", "publish", "publish_batch", "search", "advance", "top", "flush"}

if __name__ == "__main__":
    main()
