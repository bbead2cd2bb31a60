"""Windows that count one a group, and windows of the calendar, beside plain ones of a day: microseconds of process time an event.

The same 20,000 lists (k = 10, by price, on boxes of which 40 hold an event's place) hear the same events, 4,320 a day, in batches
of 1,000, published to one topic a kind, batch by batch in turn; of the batches after the first day the median counts. Matching is
the same for all, so it is given too, and the ratio without it.

    python -m benchmarks.window_kinds
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tidings as td
from experiments.report import provenance

RESULT = Path(__file__).parent / "results" / "window_kinds.json"
SCHEMA = td.Schema({"price": td.Number(0, 1000), "place": td.Place(plane=True), "sku": td.Category()})
LISTS, BATCH, BATCHES, STEP, SIDE, SKUS = 20_000, 1_000, 16, 20, 0.0447, 500
BEGIN = 1_600_000_000
PLAIN = {"k": 10, "window": "1 day", "by": "-price"}
KINDS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "per": PLAIN | {"per": "sku"},
    "calendar": PLAIN | {"window": "day", "tz": "Europe/Berlin"},
    "per, calendar": PLAIN | {"window": "day", "tz": "Europe/Berlin", "per": "sku"},
}


def topic_of(corner: np.ndarray, ranking: dict[str, Any]) -> td.Topic:
    sides = [pa.array(side) for side in (*corner.T, *(corner + SIDE).T)]
    boxes = pa.StructArray.from_arrays(sides, ["xmin", "ymin", "xmax", "ymax"])
    columns = {"id": [f"s{i:06}" for i in range(LISTS)], "place.box": boxes}
    topic = td.Topic("t", SCHEMA)
    topic.subscribe_many(pa.table(columns | {name: [value] * LISTS for name, value in ranking.items()}), time=BEGIN - 1)
    return topic


def events(rng: np.random.Generator, first: int) -> pa.Table:
    number = np.arange(first, first + BATCH)
    place = pa.StructArray.from_arrays([pa.array(side) for side in rng.random((2, BATCH))], ["x", "y"])
    return pa.table(
        {
            "id": [f"e{i:08}" for i in number.tolist()],
            "price": rng.integers(0, 1000, BATCH).astype(float),
            "place": place,
            "sku": [f"p{i}" for i in rng.integers(0, SKUS, BATCH).tolist()],
            "time": pa.array((BEGIN + STEP * number) * 1_000_000, pa.timestamp("us", "UTC")),
        }
    )


def main() -> None:
    rng = np.random.default_rng(7)
    corner = rng.random((LISTS, 2))
    topics = {kind: topic_of(corner, ranking) for kind, ranking in KINDS.items()}
    spent: dict[str, list[float]] = {kind: [] for kind in (*KINDS, "match")}
    for batch in range(BATCHES):
        table = events(rng, batch * BATCH)
        acts = {kind: topic.publish_batch for kind, topic in topics.items()} | {"match": topics["plain"].match_batch}
        for kind, act in acts.items():
            start = time.process_time()
            act(table)
            spent[kind].append((time.process_time() - start) / BATCH * 1e6)
    settled = {kind: each[86_400 // STEP // BATCH + 1 :] for kind, each in spent.items()}
    median = {kind: statistics.median(each) for kind, each in settled.items()}
    rows = [
        {
            "kind": kind,
            "us": median[kind],
            "least": min(settled[kind]),
            "most": max(settled[kind]),
            "times plain": median[kind] / median["plain"],
            "times plain without matching": (median[kind] - median["match"]) / (median["plain"] - median["match"]),
        }
        for kind in KINDS
    ]
    for row in rows:
        print({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()})
    found = {"run": provenance(), "lists": LISTS, "batches": len(settled["plain"]), "match us": median["match"], "results": rows}
    RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
