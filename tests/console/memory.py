"""`python -m tests.console.memory`: twelve minutes of 5,000 events a second with the page open; what it holds, and how it keeps up.

The page stays at Live and looks in at every other room once a minute. Once a minute, before that, garbage is collected and counted
(`heaps`), with the pictures that the page drew a second and the longest that its thread was busy. The result is
`reliability/console.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from experiments.report import provenance
from tests.console.bare import Bare
from tests.console.heaps import Heap, of_process
from tests.console.load import Load, prepared
from tests.serve.running import Running

RESULT = Path("reliability/console.json")
RATE, PEOPLE = 5000, 40
LOADED, MINUTE, ROUNDS = 5, 60, 10
"""Seconds until the page is there, and of a minute; rounds through all rooms before the clock starts."""
ROOMS = ("subscriptions", "explain", "boards", "engine", "live")
WATCH = """
window.kept = { pictures: 0, busy: 0, last: performance.now() };
(function picture() { kept.pictures += 1; requestAnimationFrame(picture); })();
setInterval(() => { const now = performance.now(); kept.busy = Math.max(kept.busy, now - kept.last - 100); kept.last = now; }, 100);
"""
TAKE = """(() => {
  const said = ["live-state", "sampled"].map((id) => document.getElementById(id)?.textContent).join("; ");
  const found = [kept.pictures, Math.round(kept.busy), said];
  kept.pictures = kept.busy = 0;
  return found;
})()"""


def run(minutes: int) -> dict[str, Any]:
    samples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, Running(Path(folder) / "data") as service:
        prepared(service.client, "load", PEOPLE)
        with Bare(Path(folder) / "profile", service.url) as page, Load(service.url, "load", RATE) as load:
            heap = Heap(page)
            time.sleep(LOADED)
            for _ in range(ROUNDS):
                look_in(heap)
            heap.run(WATCH)
            began = time.monotonic()
            for minute in range(1, minutes + 1):
                heap.run(TAKE)
                published, since = load.published, time.monotonic()
                time.sleep(max(0.0, began + MINUTE * minute - since))
                seconds = time.monotonic() - since
                pace = paced(heap, seconds) | {"published a second": round((load.published - published) / seconds)}
                held = heap.counted() | heap.held() | {"process": of_process(page.process.pid)}
                samples.append({"seconds": round(time.monotonic() - began), **held, **pace})
                print(samples[-1], flush=True)
                look_in(heap)
        late = round(load.late, 1)
    return {"samples": samples, "published": load.published, "told": load.told, "late at most, s": late, "chromium": page.version}


def look_in(heap: Heap) -> None:
    for room in ROOMS:
        heap.run(f"location.hash = '#/{room}'")
        time.sleep(0.5)


def paced(heap: Heap, seconds: float) -> dict[str, Any]:
    pictures, busy, said = heap.run(TAKE)
    load = round(os.getloadavg()[0], 1)
    return {"pictures a second": round(pictures / seconds, 1), "longest busy, ms": busy, "load of the machine": load, "said": said}


def grown(samples: list[dict[str, Any]], name: str) -> float:
    """By how much the least of the last third is above the least of the first, as a part of it: what garbage collection leaves."""
    third = -(-len(samples) // 3)
    first, last = (min(one[name] for one in some) for some in (samples[:third], samples[-third:]))
    return float(last / first - 1)


def begun() -> dict[str, float]:
    """Seconds from `tidings serve --demo` until its page shows who was told; of them what a Chromium took, and what the service
    took of a processor."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with Running(Path(folder) / "data", "--demo", access=()) as service:
            ready = time.monotonic() - began
            with Bare(Path(folder) / "profile", service.url) as page:
                browser = time.monotonic() - began - ready
                heap = Heap(page)
                while not heap.run("document.querySelectorAll('#newest tbody tr').length"):
                    time.sleep(0.05)
                seen = time.monotonic() - began
                assert service.process is not None
                spent = psutil.Process(service.process.pid).cpu_times()
    known = {"ready": ready, "browser": browser, "seen": seen, "processor": spent.user + spent.system}
    return {name: round(seconds, 1) for name, seconds in known.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=int, default=12)
    store(begun(), run(parser.parse_args().minutes))


def store(demo: dict[str, float], found: dict[str, Any]) -> None:
    growth = {name: round(grown(found["samples"], name), 4) for name in ("heap", "data", "code", "nodes", "listeners", "process")}
    said = {"run": provenance(), "demo, s": demo, "asked for a second": RATE, "growth": growth}
    RESULT.write_text(json.dumps(said | found, indent=1) + "\n")
    print(f"growth {growth}: {RESULT}")


if __name__ == "__main__":
    main()
