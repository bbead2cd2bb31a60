"""What it costs a topic in memory that a change that fails is undone: `python -m benchmarks.undo`.

The same acts on a topic that remembers (`topic.undo.Remembered`) and on one whose journal remembers nothing, in one run, turn by
turn; process CPU time, the least of REPEATS. `undoing` is one `recover()` at the end: a copy, and the acts since it again. Raw
results go to benchmarks/results/undo.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import tidings as td
from experiments.report import markdown, provenance
from tidings.topic.journal import Journal

LISTS, REPEATS = 10_000, 3
SCHEMA = {"price": td.Number(0, 1000), "size": td.Number()}
RESULTS = Path(__file__).parent / "results" / "undo.json"


def made(remembers: bool) -> td.Topic:
    topic = td.Topic("t", SCHEMA)
    if not remembers:
        topic.journal = Journal()
    table = {"id": [f"s{i}" for i in range(LISTS)], "price.lo": [(i * 7) % 1000 for i in range(LISTS)]}
    ranking = {"price.hi": [(i * 7) % 1000 + 20 for i in range(LISTS)], "k": [5] * LISTS, "window": ["1 hour"] * LISTS}
    topic.subscribe_many(pa.table({**table, **ranking, "by": ["-size"] * LISTS}), time=0)
    return topic


def event(n: int) -> dict[str, Any]:
    return {"id": f"e{n}", "price": float((n * 37) % 1000), "size": float((n * 13) % 101)}


def single(topic: td.Topic) -> None:
    for n in range(4_000):
        topic.publish(event(n), time=n)


def batches(topic: td.Topic) -> None:
    for first in range(0, 40_000, 1_000):
        topic.publish_batch([event(n) for n in range(first, first + 1_000)], time=first)


def subscribing(topic: td.Topic) -> None:
    for n in range(4_000):
        topic.subscribe(f"s{n}", f"price >= {n % 1000}", k=5, window="1 hour", by="-size", time=n)


ACTS: dict[str, Callable[[td.Topic], None]] = {
    "4,000 events, one by one": single,
    "40,000 events, 1,000 at once": batches,
    "4,000 subscriptions": subscribing,
}


def cpu(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def main() -> None:
    batches(made(True))  # loads the kernels
    rows = []
    for name, act in ACTS.items():
        took: dict[bool, list[float]] = {True: [], False: []}
        undoing = []
        for _ in range(REPEATS):
            for remembers in (False, True):
                topic = made(remembers)
                took[remembers].append(cpu(partial(act, topic)))
                if remembers:
                    undoing.append(cpu(topic.recover))
                topic.close()
        with_undo, without = min(took[True]), min(took[False])
        row = {"acts": name, "s without": without, "s with": with_undo, "with / without": with_undo / without}
        rows.append(row | {"undoing one failure, s": min(undoing), "all": {str(kept): all for kept, all in took.items()}})
    shown = [{key: value for key, value in row.items() if key != "all"} for row in rows]
    print(markdown(shown))
    RESULTS.write_text(json.dumps({"lists": LISTS, "repeats": REPEATS, "run": provenance(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
