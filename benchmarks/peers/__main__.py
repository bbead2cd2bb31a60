"""Run every peer on its workloads beside tidings, keep each row, print the table."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.peers.golang import Quamina
from benchmarks.peers.jvm import event_ruler, lucene_monitor
from benchmarks.peers.libraries import DuckDB, Scan, STRtree
from benchmarks.peers.peer import Peer, Task, Unavailable, difference, tidings_side, told
from benchmarks.peers.servers import PostgreSQL, Redis, Tile38
from benchmarks.peers.spark_joins import OnSpark, range_join, sedona_join, top_n
from experiments.report import markdown, provenance

RESULT = Path(__file__).parent.parent / "results" / "peers.json"
EVENTS = 10_000


def words_box(n: int) -> Task:
    return Task("words-box", workloads.words_box(n, EVENTS))


def boxes_top10(matches: int) -> Callable[[int], Task]:
    """The ten best of about so many boxes round a point."""
    return lambda n: Task(f"boxes-top10 of {matches:,}", workloads.scored_boxes(n, EVENTS, (matches / n) ** 0.5), k=10)


def boxes(n: int) -> Task:
    return Task("boxes of 39", workloads.scored_boxes(n, EVENTS, (39 / n) ** 0.5))


def joined_boxes(n: int) -> Task:
    """Many events, since a job on Spark costs a second whatever it does."""
    return Task("boxes of 39, on Spark", workloads.scored_boxes(n, 20 * EVENTS, (39 / n) ** 0.5))


def ten_best(n: int) -> Task:
    return Task("ten best of each box, on Spark", workloads.scored_boxes(n, 20 * EVENTS, (39 / n) ** 0.5))


def fences(n: int) -> Task:
    return Task("fences, told", workloads.scored_boxes(n, EVENTS, (39 / n) ** 0.5), publishing=True)


def rooms(n: int) -> Task:
    """As many hearers of each name: for who sends to names alone."""
    return Task("rooms of 40, told", workloads.rooms(n, EVENTS, 40), publishing=True, few=EVENTS)


def categories(n: int) -> Task:
    return Task("three categories", workloads.categories(n, EVENTS))


RACES: tuple[tuple[Callable[[], Peer], Callable[[int], Task], tuple[int, ...]], ...] = (
    (STRtree, boxes_top10(39), (1_000, 100_000, 1_000_000)),
    (STRtree, boxes_top10(3_200), (100_000, 1_000_000)),
    (DuckDB, boxes_top10(39), (1_000, 100_000, 1_000_000)),
    (Scan, boxes, (1_000, 100_000, 1_000_000)),
    (PostgreSQL, boxes_top10(39), (1_000, 100_000)),
    (PostgreSQL, boxes_top10(3_200), (100_000,)),
    (PostgreSQL, words_box, (100_000, 1_000_000)),
    (Tile38, fences, (1_000, 100_000)),
    (Redis, rooms, (1_000, 100_000)),
    (lucene_monitor, words_box, (1_000, 100_000, 1_000_000)),
    (event_ruler, words_box, (1_000, 100_000)),
    (Quamina, categories, (1_000, 100_000)),
    (range_join, joined_boxes, (1_000,)),
    (top_n, ten_best, (1_000,)),
    (sedona_join, joined_boxes, (1_000, 100_000)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="peers, by a part of their names")
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="numbers of subscriptions")
    options = parser.parse_args()
    os.environ["TIDINGS_KERNELS"] = "compiled"
    rows = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    for make, task_of, sizes in RACES:
        peer = make()
        if options.only and not any(name.lower() in peer.name.lower() for name in options.only):
            continue
        for n in sizes:
            if options.sizes and n not in options.sizes:
                continue
            print(f"{peer.name}, {n:,} subscriptions", flush=True)
            row = raced(peer, task_of(n))
            rows = [old for old in rows if (old["peer"], old["workload"], old["subscriptions"]) != key(row)] + [row]
            RESULT.write_text(json.dumps({**provenance(), "load": os.getloadavg(), "rows": rows}, indent=1) + "\n")
    print(markdown(rows))


def key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["peer"], row["workload"], row["subscriptions"]


def raced(peer: Peer, task: Task) -> dict[str, Any]:
    row: dict[str, Any] = {"peer": peer.name, "version": peer.version, "workload": task.label, "subscriptions": task.subscriptions}
    with told("tidings"):
        ours = peer.ours(task) if isinstance(peer, OnSpark) else tidings_side(task)
    try:
        with told(peer.name):
            theirs = peer.measure(task)
    except Unavailable as reason:
        return {**row, "left out": str(reason)}
    row |= {"version": peer.version, "answers": difference(ours.answers, theirs.answers) or "equal"}
    for way in ("batch", "single"):
        mine, other = getattr(ours, way), getattr(theirs, way)
        if other == other:
            row |= {f"tidings {way} us": mine * 1e6, f"peer {way} us": other * 1e6, f"{way} ratio": other / mine}
    return row


if __name__ == "__main__":
    main()
