"""Memory of live events and of windows, bytes each, and how long a million live events take to come back after a restart.

Resident memory of this process before and after, nothing else being made in between: ten million live events of a price and a
point, published in batches; a million windows of k = 10, all full. Beside each stands what its numbers and texts take in plain
columns. Some minutes, and some gigabytes.

    python -m benchmarks.memory [--small]

`--small` takes a hundredth of it and stores nothing.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tidings as td
from experiments.report import provenance

RESULT = Path(__file__).parent / "results" / "memory.json"
SCHEMA = td.Schema({"price": td.Number(0, 1000), "place": td.Place(plane=True)})
BATCH, BEGIN = 10_000, 1_600_000_000
rng = np.random.default_rng(9)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def batch(first: int, price: np.ndarray) -> pa.Table:
    place = pa.StructArray.from_arrays([pa.array(column) for column in rng.random((2, len(price)))], names=["x", "y"])
    at = pa.array((BEGIN + first + np.arange(len(price))) * 1_000, pa.timestamp("us", "UTC"))
    return pa.table({"id": [f"e{i:08}" for i in range(first, first + len(price))], "price": price, "place": place, "time": at})


def live_events(count: int) -> dict[str, Any]:
    topic = td.Topic("t", SCHEMA)
    topic.publish_batch(batch(0, rng.random(BATCH)))
    before = resident()
    for first in range(BATCH, BATCH + count, BATCH):
        topic.publish_batch(batch(first, rng.random(BATCH)))
    plain = 9 + 4 + 8 * 4
    return {"what": f"{count:,} live events", "bytes each": (resident() - before) / count, "in plain columns": plain}


def windows(count: int, k: int = 10) -> dict[str, Any]:
    """All watch the same prices, so that k events fill every list."""
    topic = td.Topic("t", SCHEMA)
    table = {"id": [f"s{i:07}" for i in range(count)], "price.lo": np.zeros(count)}
    table |= {name: [value] * count for name, value in {"k": k, "window": "1000 days", "by": "-price"}.items()}
    topic.subscribe_many(pa.table(table), time=0)
    topic.match_batch(batch(0, rng.random(100))[:1])
    before = resident()
    for first in range(k):
        topic.publish_batch(batch(first, rng.random(1)))
    held = len(topic.publisher.windows)
    assert held == count
    return {"what": f"{count:,} windows of k = {k}", "bytes each": (resident() - before) / count, "in plain columns": k * (8 + 4)}


def restart(count: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    try:
        topic = td.open(folder / "t", "t", SCHEMA)
        start = time.perf_counter()
        for first in range(0, count, BATCH):
            topic.publish_batch(batch(first, rng.random(BATCH)))
        published = time.perf_counter() - start
        topic.close()
        start = time.perf_counter()
        with td.open(folder / "t") as again:
            opened = time.perf_counter() - start
            assert len(again.publisher.events) == count
    finally:
        shutil.rmtree(folder)
    told = {"what": f"{count:,} live events, opened again", "seconds": opened, "wanted seconds": count / 1_000_000}
    return told | {"durable publish_batch, us an event": published / count * 1e6}


def main(small: bool = False) -> None:
    part = 100 if small else 1
    rows = []
    for measured in (live_events(10_000_000 // part), restart(1_000_000 // part), windows(1_000_000 // part)):
        rows.append(measured)
        print(measured, flush=True)
    if not small:
        RESULT.write_text(json.dumps({"run": provenance(), "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main("--small" in sys.argv)
