"""The segment structures alone, without the engine: microseconds an event and bytes a clause, beside a peer in the same run.

    python -m benchmarks.kernels [--full]

The workloads are those of `benchmarks.workloads`, drawn as arrays. The peer of `ranges-place`, `ranges` and `words-box` is a NumPy
columnar scan (one vector comparison a column, the words by a join), that of `boxes-top10` shapely's STRtree and argpartition.
Times are process CPU time, the least of three. `--full` takes 1M clauses (10M for words-box) in place of a tenth.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from benchmarks.workloads import ATTRIBUTES, clustered, hot_areas, zipf
from experiments.report import provenance
from tidings.compiling.pinned import Pinned
from tidings.index.blocks.bitmaps import BlockBitmaps
from tidings.index.blocks.words import WordBlocks
from tidings.index.packed.clauses import NOBODY
from tidings.index.packed.packing import as_events
from tidings.model.columns.arrays import MISSING_BOX, NO_BOX, RANGE, ClauseColumns, EventColumns

RESULTS = Path(__file__).parent / "results"
VOCABULARY = 1_000_000
REPEATS, SCANNED, SINGLE = 3, 20_000_000, 1000
"""SCANNED is how many clauses the columnar scan reads in all, over a few events."""
Workload = tuple[ClauseColumns, EventColumns]


def clause_columns(
    box: NDArray[Any], dim: NDArray[Any], ends: NDArray[Any], words: tuple[NDArray[Any], NDArray[Any]]
) -> ClauseColumns:
    """Clauses with the same number of intervals each; `dim` is n x predicates, `ends` as many pairs."""
    n, predicates = dim.shape
    return ClauseColumns(
        owner=np.arange(n, dtype=np.int32),
        pred_start=np.arange(n + 1) * predicates,
        pred_dim=dim.ravel().astype(np.int16),
        pred_kind=np.full(dim.size, RANGE, np.uint8),
        pred_lo=np.ascontiguousarray(ends[:, 0]),
        pred_hi=np.ascontiguousarray(ends[:, 1]),
        pool=np.empty(0, np.int32),
        box=box,
        word_start=words[0],
        word=words[1],
        residue=np.zeros(n, np.bool_),
    )


def no_words(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.zeros(n + 1, np.int64), np.empty(0, np.int32)


def points(where: NDArray[Any]) -> NDArray[Any]:
    return np.round(np.hstack([where, where]), 7)


def around(centre: NDArray[Any], half: NDArray[Any]) -> NDArray[Any]:
    return np.round(np.hstack([centre - half, centre + half]), 7)


def ranges(n: int, events: int, placed: bool, predicates: int = 10) -> Workload:
    rng = np.random.default_rng(3)
    attributes = ATTRIBUTES - 2 * placed
    box, where = np.full((n, 4), NO_BOX), np.full((events, 4), MISSING_BOX)
    if placed:
        hot = hot_areas(rng, 10_000)
        half = (0.5 + 1.5 * rng.random((n, 1))) / 200
        box = around(hot[rng.integers(0, len(hot), n)] + rng.normal(0, 0.005, (n, 2)), half)
        where = points(hot[rng.integers(0, len(hot), events)] + rng.normal(0, 0.002, (events, 2)))
    weight = 1.0 / np.arange(1, attributes + 1)
    count = predicates - 2 * placed
    dim = np.empty((n, count), np.int16)
    for first in range(0, n, 100_000):
        keys = -np.log(rng.random((min(100_000, n - first), attributes))) / weight
        dim[first : first + 100_000] = np.sort(np.argpartition(keys, count - 1, axis=1)[:, :count], axis=1)
    clauses = clause_columns(box, dim, np.sort(rng.random((n * count, 2)), axis=1), no_words(n))
    value = np.full((events, attributes + 2), np.nan)
    present = np.argsort(rng.random((events, attributes)), axis=1) < rng.integers(attributes - 5, attributes + 1, (events, 1))
    value[:, :attributes] = np.where(present, rng.random((events, attributes)), np.nan)
    return clauses, EventColumns(value, where, *no_words(events))


def word_sets(rng: np.random.Generator, length: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distinct words by Zipf with a flattened head, ascending in each row."""
    word = zipf(rng, VOCABULARY, int(length.sum()), offset=20.0)
    pairs = np.unique(np.repeat(np.arange(len(length)), length) * VOCABULARY + word)
    return np.searchsorted(pairs, np.arange(len(length) + 1) * VOCABULARY), (pairs % VOCABULARY).astype(np.int32)


def words_box(n: int, events: int) -> Workload:
    rng = np.random.default_rng(5)
    cities = rng.random((60, 2))
    box = around(clustered(rng, cities, n), (0.01 + 0.04 * rng.random((n, 2))) / 2)
    clauses = clause_columns(box, np.empty((n, 0)), np.empty((0, 2)), word_sets(rng, rng.integers(1, 6, n)))
    words = word_sets(rng, rng.integers(6, 21, events))
    return clauses, EventColumns(np.full((events, 2), np.nan), points(clustered(rng, cities, events)), *words)


def scored_boxes(n: int, events: int, side: float) -> tuple[Workload, NDArray[Any]]:
    rng = np.random.default_rng(6)
    box = around(rng.random((n, 2)), side * (0.5 + rng.random((n, 2))) / 2)
    clauses = clause_columns(box, np.empty((n, 0)), np.empty((0, 2)), no_words(n))
    return (clauses, EventColumns(np.zeros((events, 2)), points(rng.random((events, 2))), *no_words(events))), rng.random(n)


def seconds(work: Callable[[], object]) -> float:
    """The least process time of REPEATS runs, after one for the compiler and the caches."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def scan(clauses: ClauseColumns, events: EventColumns, count: int) -> list[NDArray[Any]]:
    """The peer: each event against whole columns."""
    n, matches = len(clauses), []
    predicates = len(clauses.pred_dim) // max(n, 1)
    dim, lo, hi = (column.reshape(n, predicates).T for column in (clauses.pred_dim, clauses.pred_lo, clauses.pred_hi))
    owner = np.repeat(np.arange(n), np.diff(clauses.word_start))
    for e in range(count):
        box, value = events.box[e], events.value[e]
        left = np.flatnonzero(
            (clauses.box[:, 0] <= box[2])
            & (clauses.box[:, 1] <= box[3])
            & (box[0] <= clauses.box[:, 2])
            & (box[1] <= clauses.box[:, 3])
        )
        for p in range(predicates):
            x = value[dim[p][left]]
            left = left[(lo[p][left] <= x) & (x <= hi[p][left])]
        if len(clauses.word):
            words = events.word[events.word_start[e] : events.word_start[e + 1]]
            carried = np.bincount(owner[np.isin(clauses.word, words)], minlength=n)
            left = left[carried[left] == np.diff(clauses.word_start)[left]]
        matches.append(left)
    return matches


def measure(name: str, structure: Any, workload: Workload) -> dict[str, Any]:
    clauses, events = workload
    start = time.process_time()
    index = structure.build(clauses)
    built = time.process_time() - start
    event, clause = index.match_batch(events)
    counted = index.stats
    scanned = max(2, min(20, SCANNED // len(clauses)))
    for e, expected in enumerate(scan(clauses, events, scanned)):
        assert np.array_equal(np.sort(clause[event == e]), expected), f"{name}: event {e} differs from the scan"
    rows = Pinned(as_events(events))
    single = min(SINGLE, len(events))
    batch = seconds(lambda: index.match_batch(events)) / len(events)
    one = seconds(lambda: [index.match_one(rows, e, NOBODY, 0) for e in range(single)]) / single
    peer = seconds(lambda: scan(clauses, events, scanned)) / scanned
    return {
        "workload": name,
        "clauses": len(clauses),
        "batch us": round(batch * 1e6, 2),
        "events a second": round(1 / batch),
        "single us": round(one * 1e6, 2),
        "peer us": round(peer * 1e6, 1),
        "ratio": round(peer / batch, 1),
        "matches": round(len(event) / len(events), 2),
        "candidates": round(counted.candidates / len(events), 2),
        "bytes": round(index.nbytes / len(clauses), 1),
        "build s": round(built, 1),
    }


def measure_top(n: int, events: int, side: float, k: int = 10) -> dict[str, Any]:
    (clauses, stream), score = scored_boxes(n, events, side)
    index = BlockBitmaps.build(clauses, score=score)
    tie = np.arange(n)
    tree = shapely.STRtree(shapely.box(*clauses.box.T))
    spots = shapely.points(stream.box[:, :2])

    def peer() -> list[NDArray[Any]]:
        event, found = tree.query(spots, predicate="intersects")
        parts = np.split(found, np.cumsum(np.bincount(event, minlength=events))[:-1])
        tops = [part[np.argpartition(-score[part], k - 1)[:k]] if len(part) > k else part for part in parts]
        return [top[np.lexsort((top, -score[top]))] for top in tops]

    event, clause = index.topk_batch(stream, k, score, tie)
    bounds = np.searchsorted(event, np.arange(events + 1))
    for e, expected in enumerate(peer()):
        assert clause[bounds[e] : bounds[e + 1]].tolist() == expected.tolist(), f"boxes-top10: event {e} differs from the peer"
    ours, theirs = seconds(lambda: index.topk_batch(stream, k, score, tie)) / events, seconds(peer) / events
    return {
        "workload": f"boxes-top{k}",
        "clauses": n,
        "batch us": round(ours * 1e6, 2),
        "peer us": round(theirs * 1e6, 1),
        "ratio": round(theirs / ours, 1),
        "matches": round(len(index.match_batch(stream)[0]) / events, 1),
        "bytes": round(index.nbytes / n, 1),
    }


def main() -> None:
    full = "--full" in sys.argv
    size = 1_000_000 if full else 100_000
    works: list[Callable[[], dict[str, Any]]] = [
        lambda: measure("words-box", WordBlocks, words_box(10 * size, 10_000)),
        lambda: measure("ranges-place", BlockBitmaps, ranges(size, 8000, True)),
        lambda: measure("ranges", BlockBitmaps, ranges(size, 8000, False)),
        lambda: measure("ranges, 4 predicates", BlockBitmaps, ranges(size, 1000, False, 4)),
        lambda: measure_top(100_000, 2000, 0.02),
        lambda: measure_top(100_000, 500, 0.18),
    ]
    RESULTS.mkdir(exist_ok=True)
    rows = []
    for work in works:
        rows.append(work())
        print(*(f"{key} {value}" for key, value in rows[-1].items()), sep=" | ", flush=True)
        (RESULTS / ("kernels-full.json" if full else "kernels.json")).write_text(
            json.dumps({"run": provenance(), "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
