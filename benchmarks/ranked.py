"""Ranked retrieval beside its peers, in one run: `python -m benchmarks.ranked [n]`.

Process CPU time, the least of several repeats; raw results go to benchmarks/results/ranked.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import tidings as td
from benchmarks import workloads
from benchmarks.workloads import names
from experiments.baselines.interval_tree import IntervalTree
from experiments.baselines.score_sorted_interval_tree import ScoreSortedIntervalTree
from experiments.baselines.scored_rtree import ScoredRTree
from experiments.baselines.scored_segment_tree import ScoredSegmentTree
from experiments.ranked_data import Parameters, generate
from experiments.report import cpu_seconds, markdown, provenance
from experiments.structures.scored_segments import ScoredSegments
from tidings.index.relaxed.relaxed_index import RelaxedIndex
from tidings.index.scored.ir_tree import IRTree
from tidings.index.scored.sopt_rtree import SOPTRTree
from tidings.match.answers.ordering import match_table
from tidings.match.store.hits import scored
from tidings.match.store.ranked_paths import Question, RankedPaths
from tidings.model.columns.arrays import NO_BOX, ClauseColumns

K = 20
RESULTS = Path(__file__).parent / "results" / "ranked.json"


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    warm(2000)
    result = {"n": n, "k": K, "run": provenance()}
    for name, measure in (
        ("stabbing", stabbing),
        ("updates", updates),
        ("beyond", beyond),
        ("relaxed", relaxed),
        ("high", high_dimensions),
        ("paths", paths),
    ):
        result[name] = measure(n)
        print(f"\n{measure.__doc__}\n\n{markdown(result[name])}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


def warm(n: int) -> None:
    """Compile everything on a small size."""
    for measure in (stabbing, updates, beyond, relaxed, high_dimensions, paths):
        measure(n)


def scan_topk(lo, hi, score, qlo, qhi, k):
    """NumPy's way: test all, keep the best k."""
    met = np.flatnonzero((lo <= qhi) & (qlo <= hi))
    if len(met) > k:
        met = met[np.argpartition(-score[met], k - 1)[:k]]
    return met[np.lexsort((met, -score[met]))]


def stabbing(n):
    """Top 20 of the intervals that contain a point, d = 1, the paper's workload."""
    load = generate(Parameters(intervals=n, queries=2000))
    lo, hi, score, q = load.lo[0], load.hi[0], load.score[0], np.ascontiguousarray(load.query[:, 0])
    expected = np.asarray([scan_topk(lo, hi, score, x, x, K) for x in q[:50]])
    scan = cpu_seconds(lambda: [scan_topk(lo, hi, score, x, x, K) for x in q[:20]]) / 20
    rows = [{"structure": "NumPy scan + argpartition", "us a query": scan * 1e6, "scan / this": 1.0}]
    builds = {
        "SOPT-R-tree": SOPTRTree.build,
        "IR-tree": IRTree.build,
        "segment tree": ScoredSegmentTree,
        "scored R-tree": ScoredRTree,
        "score-sorted interval tree": ScoreSortedIntervalTree,
        "conventional interval tree": IntervalTree,
    }
    for name, build in builds.items():
        start = time.process_time()
        index = build(lo, hi, score)
        built = time.process_time() - start
        asked = q if name in ("SOPT-R-tree", "IR-tree", "segment tree", "scored R-tree") else q[:100]
        assert np.array_equal(index.topk_batch(q[:50], K), expected)
        each = cpu_seconds(lambda i=index, a=asked: i.topk_batch(a, K), 5) / len(asked)
        rows.append(
            {
                "structure": name,
                "us a query": each * 1e6,
                "scan / this": scan / each,
                "bytes an interval": index.nbytes / n,
                "build s": built,
            }
        )
    return rows


def updates(n):
    """Inserts, deletes and new scores of 20,000 intervals (a tenth, if that is less), and queries after that."""
    load = generate(Parameters(intervals=n, queries=2000))
    lo, hi, score, q = load.lo[0], load.hi[0], load.score[0], np.ascontiguousarray(load.query[:, 0])
    count = min(20_000, n // 10)
    chosen = np.random.default_rng(4).permutation(n)[:count].tolist()
    rows = []
    for name, build in (("IR-tree", IRTree.build), ("SOPT-R segments", ScoredSegments.build)):
        index = build(lo, hi, score)
        acts = {
            "delete": lambda i, x=index: x.delete(i),
            "insert": lambda i, x=index: x.insert(i, lo[i], hi[i], score[i]),
            "new score": lambda i, x=index: x.update_score(i, score[i]),
        }
        row = {"structure": name}
        for act, do in acts.items():
            row[f"{act} us"] = cpu_seconds(lambda d=do: [d(i) for i in chosen], 1) / count * 1e6
        row["query us after"] = cpu_seconds(lambda x=index: x.topk_batch(q, K), 5) / len(q) * 1e6
        assert np.array_equal(index.topk(q[0], K), scan_topk(lo, hi, score, q[0], q[0], K))
        rows.append(row)
    return rows


def beyond(n):
    """Events that are ranges a tenth of the domain wide, and scores base + 2 coefficients x attributes, one call each."""
    load = generate(Parameters(intervals=n, queries=300))
    lo, hi, score, q = load.lo[0], load.hi[0], load.score[0], load.query[:, 0]
    coefficient = np.random.default_rng(5).random((n, 2)) / 4
    attribute = np.asarray([0.5, -0.25])
    tree, ir = SOPTRTree.build(lo, hi, score, coefficient=coefficient), IRTree.build(lo, hi, score)
    assert np.array_equal(tree.topk_range(q[0], q[0] + 0.1, K), scan_topk(lo, hi, score, q[0], q[0] + 0.1, K))
    questions = {
        "range, SOPT-R-tree": lambda x: tree.topk_range(x, x + 0.1, K),
        "range, IR-tree": lambda x: ir.topk_range(x, x + 0.1, K),
        "range, NumPy scan": lambda x: scan_topk(lo, hi, score, x, x + 0.1, K),
        "event score, SOPT-R-tree": lambda x: tree.topk_event(x, x, attribute, K),
        "event score, NumPy scan": lambda x: scan_topk(lo, hi, score + coefficient @ attribute, x, x, K),
    }
    rows = []
    for name, ask in questions.items():
        asked = q[:10] if "scan" in name else q
        rows.append({"question": name, "us a query": cpu_seconds(lambda a=ask, s=asked: [a(x) for x in s]) / len(asked) * 1e6})
    return rows


def relaxed(n):
    """Relaxed matching, sum of weights, d = 4: one call an event."""
    load = generate(Parameters(intervals=n, dimensions=4, queries=100))
    weights = {
        "1 - length (the paper's)": load.score,
        "random": np.random.default_rng(6).random(load.score.shape),
        "all 1": np.ones(load.score.shape),
    }
    return [
        _relaxed_row(name, columns(np.tile(np.arange(4), (n, 1)), load.lo.T, load.hi.T), weight.T, load.query)
        for name, weight in weights.items()
    ]


def high_dimensions(n):
    """Relaxed matching at d = 100, five dimensions a subscription."""
    n = n // 2
    rng = np.random.default_rng(7)
    dims = np.sort(
        np.concatenate([np.argsort(rng.random((min(n, 50_000), 100)), axis=1)[:, :5] for _ in range(max(1, n // 50_000))])[:n],
        axis=1,
    )
    middle, half = rng.random(dims.shape), rng.random(dims.shape) * 0.2
    clauses = columns(dims, middle - half, middle + half)
    weights = {"random": rng.random(dims.shape), "all 1": np.ones(dims.shape)}
    return [_relaxed_row(name, clauses, weight, rng.random((60, 100))) for name, weight in weights.items()]


def paths(n):
    """A topic's k best by each path that is open, microseconds an event from columns to table, and which is chosen; n / 10."""
    n = max(n // 10, 2000)
    rng = np.random.default_rng(8)
    low = rng.random(n)
    one = {"id": names("s", n), "a0.lo": low, "a0.hi": low + 0.2 * rng.random(n)}
    loads = {
        "one range, 5 % match": (workloads.ranges(1, 500), pa.table(one)),
        "ten ranges, few match": ((ten := workloads.ranges(n, 500)), ten.subscriptions),
        "four ranges, many match": ((four := workloads.ranges(n, 500, 4)), four.subscriptions),
        "boxes, 1 % match": ((boxes := workloads.scored_boxes(n, 500, 0.1)), boxes.subscriptions.drop_columns(["score"])),
    }
    rows = []
    for name, (load, subscriptions) in loads.items():
        topic = td.Topic("t", load.schema)
        topic.subscribe_many(subscriptions.append_column("score", pa.array(rng.random(n))), time=0)
        for count, k in ((500, 10), (500, 1000), (1, 10)):
            rows.append({"load": name, "events": count, "k": k, **_path_times(topic, load.events.slice(0, count), k)})
    return rows


def _path_times(topic, events, k):
    [segment] = topic.store.snapshot.segments
    batch = topic._batch(events)
    question = Question(batch.columns, batch.values, k, topic.store.snapshot.seq)
    ways = segment.aside(RankedPaths)
    times = {}
    for path in ways.paths:
        if path.refusal(segment, question) is None:

            def answer(path=path):
                found = scored(segment, path.best(segment, question), batch.values, path.ordered)
                return match_table(batch.ids, [found], k)

            answer()
            times[path.name] = cpu_seconds(answer, 2) / len(batch) * 1e6
    chosen = ways.path(segment, question).name
    return {**times, "chosen": chosen, "chosen / best": times[chosen] / min(times.values())}


def columns(dims, lo, hi) -> ClauseColumns:
    """One clause a row of the n x m arrays: dimension, lower and upper end."""
    n, m = dims.shape
    return ClauseColumns(
        owner=np.arange(n, dtype=np.int32),
        pred_start=np.arange(n + 1, dtype=np.int64) * m,
        pred_dim=dims.ravel().astype(np.int16),
        pred_kind=np.zeros(n * m, np.uint8),
        pred_lo=np.ascontiguousarray(lo).ravel(),
        pred_hi=np.ascontiguousarray(hi).ravel(),
        pool=np.empty(0, np.int32),
        box=np.tile(np.asarray(NO_BOX), (n, 1)),
        word_start=np.zeros(n + 1, np.int64),
        word=np.empty(0, np.int32),
        residue=np.zeros(n, np.bool_),
    )


def _relaxed_row(name, clauses, weight, queries):
    n, m = weight.shape
    dims, lo, hi = (column.reshape(n, m) for column in (clauses.pred_dim, clauses.pred_lo, clauses.pred_hi))
    dense = queries.shape[1] == m
    by_dim = [np.ascontiguousarray(column.T) for column in (lo, hi, weight)]

    def scan(q):
        if dense:
            total = np.zeros(n)
            for low, high, gain, value in zip(*by_dim, q, strict=True):
                total += np.where((low <= value) & (value <= high), gain, 0.0)
        else:
            value = q[dims]
            total = np.where((lo <= value) & (value <= hi), weight, 0.0).sum(axis=1)
        return total[np.argpartition(-total, K - 1)[:K]]

    start = time.process_time()
    index = RelaxedIndex.build(clauses, np.ascontiguousarray(weight).ravel(), queries.shape[1])
    built = time.process_time() - start
    events = [np.concatenate([q, [np.nan, np.nan]]) for q in queries]
    assert np.allclose(index.topk(events[0], K)[1], np.sort(scan(queries[0]))[::-1], rtol=1e-12)
    each = cpu_seconds(lambda: [index.topk(event, K) for event in events]) / len(events)
    slow = cpu_seconds(lambda: [scan(q) for q in queries[:5]]) / 5
    return {
        "weights": name,
        "us an event": each * 1e6,
        "NumPy scan + argpartition us": slow * 1e6,
        "scan / this": slow / each,
        "bytes a subscription": index.nbytes / n,
        "build s": built,
    }


if __name__ == "__main__":
    main()
