"""What people ask every day, timed: `python -m benchmarks.everyday`.

- `polygon`: one subscription with a polygon of 1,000 corners against a million point events in one batch, half of them inside; and
  one by one, as many events as take a moment, in the same run.
- `preview`: what a subscription would have told over a million past events, live or in a table, with and without a window.
- `words`: texts of 100 words read, plain and in English, in one run.

Process CPU time and wall time, the least of REPEATS with the kernels loaded. Raw results go to benchmarks/results/everyday.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import tidings as td
from experiments.report import markdown, provenance
from tidings.match.store import point_residues

MANY, ONE_BY_ONE, TEXTS, REPEATS, SEED = 1_000_000, 50_000, 20_000, 3, 20
RESULTS = Path(__file__).parent / "results" / "everyday.json"


def timed(act: Callable[[], object]) -> dict[str, Any]:
    act()
    all = []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        act()
        all.append((time.process_time() - cpu, time.perf_counter() - wall))
    return {"cpu s": min(cpu for cpu, _ in all), "wall s": min(wall for _, wall in all), "all": all}


def row(name: str, events: int, act: Callable[[], object]) -> dict[str, Any]:
    took = timed(act)
    return {"what": name, "events": events, **took, "events a second of CPU": round(events / took["cpu s"])}


def polygons(rng: np.random.Generator) -> list[dict[str, Any]]:
    turn = np.linspace(0, 2 * np.pi, 1_000, endpoint=False)
    radius = 40 + 8 * np.sin(9 * turn)
    shape = shapely.Polygon(np.column_stack([50 + radius * np.cos(turn), 50 + radius * np.sin(turn)]))
    topic = td.Topic("places", {"place": td.Place(plane=True)})
    topic.subscribe("inside", f"S_INTERSECTS(place, {shape.wkt})")
    x, y = (pa.array(rng.random(MANY) * 100) for _ in range(2))
    events = pa.table({"id": np.arange(MANY).astype(str), "place": pa.StructArray.from_arrays([x, y], ["x", "y"])})
    rows = [row("a polygon of 1,000 corners, in batches", MANY, lambda: topic.match_batch(events))]
    few = point_residues.FEW
    point_residues.FEW = MANY + 1
    rows.append(row("the same, one by one", ONE_BY_ONE, lambda: topic.match_batch(events.slice(0, ONE_BY_ONE))))
    point_residues.FEW = few
    return rows


def previews(rng: np.random.Generator) -> list[dict[str, Any]]:
    topic = td.Topic("deals", {"price": td.Number(0, 1000), "brand": td.Category(), "size": td.Number()})
    week = 7 * 86_400_000_000
    past = pa.table(
        {
            "id": np.arange(MANY).astype(str),
            "price": rng.random(MANY) * 1000,
            "brand": rng.choice(["a", "b", "c", "d"], MANY),
            "size": rng.random(MANY),
            "time": pa.array(np.sort(rng.integers(1, week, MANY)), pa.timestamp("us", "UTC")),
        }
    )
    asked: dict[str, dict[str, Any]] = {"all matches": {}, "k = 5 a day": {"k": 5, "window": "1 day", "by": "-price"}}
    filter, now = "price < 10 AND brand = 'a'", week // 1_000_000
    rows = [
        row(f"preview of a table, {name}", MANY, lambda more=more: topic.preview(filter, events=past, time=now, **more))  # type: ignore[misc]
        for name, more in asked.items()
    ]
    topic.publish_batch(past)
    return [
        *rows,
        *(
            row(f"preview of live events, {name}", MANY, lambda more=more: topic.preview(filter, time=now, **more))  # type: ignore[misc]
            for name, more in asked.items()
        ),
    ]


def words(rng: np.random.Generator) -> list[dict[str, Any]]:
    known = np.array(["".join(rng.choice(list("aeiourstlnmdcgp"), rng.integers(3, 11))) for _ in range(20_000)])
    ranks = np.minimum(rng.zipf(1.3, (TEXTS, 100)), len(known)) - 1
    table = pa.table({"about": [" ".join(known[line]) for line in ranks]})
    rows = []
    for name, kind in (("plain words", td.Words()), ("words in English", td.Words(language="english"))):
        topic = td.Topic("news", {"about": kind})
        topic.subscribe("some", f"A_CONTAINS(about, ('{known[7]}'))")
        rows.append(row(f"texts of 100 words, {name}", TEXTS, lambda topic=topic: topic.match_batch(table)))  # type: ignore[misc]
    return rows


def main() -> None:
    rng = np.random.default_rng(SEED)
    rows = [*polygons(rng), *previews(rng), *words(rng)]
    print(markdown([{key: value for key, value in found.items() if key != "all"} for found in rows]))
    RESULTS.write_text(json.dumps({"repeats": REPEATS, "seed": SEED, "run": provenance(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
