"""MO-Tree at a million subscriptions of ten predicates and at a million live events, beside a columnar scan of the same data.

The scan reads the place columns of all items in one vectorised pass and verifies what is left, which is the best that a scan can do
here. Both sides run in one process, in process CPU time, the least of several repeats.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.baselines.columnar_scan import scan_clauses, scan_events
from experiments.motree import fine_axes, paper_and_fine, paper_axes
from experiments.motree_workload import NUMBERS, SCHEMA, Workload, dense_clauses, dense_events
from experiments.report import provenance
from tidings.index.motree.event_tree import MOEventTree
from tidings.index.motree.partition import value_cell_counts
from tidings.index.motree.tree import MOTree
from tidings.index.packed.packing import as_events
from tidings.index.packed.sentinels import NEVER
from tidings.model.columns.arrays import ClauseColumns, EventColumns, Vocabularies
from tidings.model.columns.gather import gather_clauses
from tidings.topic.live.live_events import HEIGHT
from tidings.topic.live.tree_axes import event_axes, searched_widths

RESULT = Path(__file__).parent / "results" / "motree.json"
ITEMS, CHANGES, QUERIES, SCANNED, REPEATS = 1_000_000, 100_000, 300, 30, 5


def main() -> None:
    work = Workload()
    results = {**subscriptions(work), **live_events(work)}
    for name, figures in results.items():
        print(f"{name:44} {min(figures['each']):10.3f} us (worst of {len(figures['each'])}: {max(figures['each']):.3f})")
    scan = min(results["search 1M events: columnar scan"]["each"])
    for tree in ("MO-Tree", "MO-Tree, fine cells", "MO-Tree, as a topic chooses"):
        found = min(results[f"search 1M events: {tree}"]["each"])
        print(f"searching live events, {tree}: {scan / found:.0f} times faster than the scan")
    facts = {"items": ITEMS, "changes": CHANGES, "queries": QUERIES, "unit": "microseconds of CPU time each"}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"run": provenance(), **facts, "results": results}, indent=1) + "\n")


def subscriptions(work: Workload) -> dict:
    clauses, events = work.clauses(ITEMS), work.events(QUERIES)
    results = {}
    for label, tree in (("paper's partition", MOTree(paper_axes(), 6)), ("fine cells", MOTree(fine_axes()))):
        tree.insert(np.arange(ITEMS), clauses)
        tree.match_batch(events)
        before = tree.stats
        results[f"match 1M: MO-Tree, {label}"] = timed(lambda tree=tree: tree.match_batch(events), QUERIES)
        results[f"match 1M: MO-Tree, {label}"]["work of an event"] = {
            key: (count - before[key]) / (REPEATS + 1) / QUERIES for key, count in tree.stats.items()
        }
        arrays = as_events(events)
        results[f"match 1M: MO-Tree, {label}, single calls"] = timed(
            lambda tree=tree, arrays=arrays: [tree.match_one(arrays, row) for row in range(QUERIES)], QUERIES
        )
        results |= {f"{name}: MO-Tree, {label}": figures for name, figures in maintenance(work, tree).items()}
        results[f"match 1M: MO-Tree, {label}"]["bytes a subscription"] = tree.nbytes / len(tree)
    lo, hi = dense_clauses(clauses)
    place, values = np.hstack([lo[:, -2:], hi[:, -2:]]).T.copy(), dense_events(events)
    results["match 1M: columnar scan"] = timed(lambda: scan_clauses(place, lo, hi, values[:SCANNED]), SCANNED)
    wanted = scan_clauses(place, lo, hi, values[:SCANNED])
    assert wanted == sum(tree.match_batch(events)[0] < SCANNED), "the scan and the tree disagree"
    return results


def maintenance(work: Workload, tree: MOTree) -> dict:
    """Each measured on a tree that has room, as in the paper; the changes are undone in between."""
    names = np.arange(ITEMS, ITEMS + CHANGES)
    more = work.clauses(CHANGES, seed=3)
    rng = np.random.default_rng(7)
    there = np.hstack([work.boxes(CHANGES, rng)])
    near = more.box + rng.normal(0, 0.001, (CHANGES, 2))[:, [0, 1, 0, 1]]
    each: dict[str, list[float]] = {name: [] for name in ("insert", "delete", "update in place", "move nearby", "move anywhere")}
    for _ in range(REPEATS + 1):
        each["insert"].append(cpu(lambda: tree.insert(names, more)))
        each["update in place"].append(cpu(lambda: tree.insert(names, more)))
        each["move nearby"].append(cpu(lambda: tree.move_batch(names, near)))
        each["move anywhere"].append(cpu(lambda: tree.move_batch(names, there)))
        each["delete"].append(cpu(lambda: tree.delete(names)))
    return {name: {"each": [seconds / CHANGES * 1e6 for seconds in all_runs[1:]]} for name, all_runs in each.items()}


def live_events(work: Workload) -> dict:
    events, clauses = work.events(ITEMS, seed=4), work.clauses(QUERIES, seed=6)
    values, (lo, hi) = dense_events(events), dense_clauses(clauses)
    place = values[:, -2:].T.copy()
    results = {"search 1M events: columnar scan": timed(lambda: scan_events(place, values, lo[:SCANNED], hi[:SCANNED]), SCANNED)}
    wanted = scan_events(place, values, lo[:SCANNED], hi[:SCANNED])
    inside = [np.count_nonzero(((lo[c, -2:, None] <= place) & (place <= hi[c, -2:, None])).all(axis=0)) for c in range(SCANNED)]
    results["search 1M events: columnar scan"]["candidates of a search"] = float(np.mean(inside))
    for label, tree in (*paper_and_fine(), ("MO-Tree, as a topic chooses", chosen_tree(events, clauses))):
        tree.insert(np.arange(ITEMS), events, np.full(ITEMS, NEVER))
        assert sum(tree.search_batch(clauses, 0)[0] < SCANNED) == wanted, "the scan and the tree disagree"
        before = tree.stats
        found = timed(lambda tree=tree: tree.search_batch(clauses, 0), QUERIES)
        found["work of a search"] = {key: (count - before[key]) / (REPEATS + 1) / QUERIES for key, count in tree.stats.items()}
        found["bytes an event"] = tree.nbytes / ITEMS
        results[f"search 1M events: {label}"] = found
    return results


def chosen_tree(events: EventColumns, clauses: ClauseColumns) -> MOEventTree:
    """Axes and cells as `LiveEvents` chooses them: measured on the events, and on 64 searches."""
    axes = event_axes(SCHEMA, Vocabularies(SCHEMA), events)
    searches = [gather_clauses(clauses, np.array([row])) for row in range(64)]
    counts = value_cell_counts(len(events), searched_widths(axes[:HEIGHT], events, searches))
    return MOEventTree(axes, NUMBERS + 2, HEIGHT, counts + [1] * (len(axes) - HEIGHT))


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def timed(work: Callable[[], object], count: int) -> dict:
    """Microseconds a query, once a repeat, after one unmeasured call."""
    work()
    return {"each": [cpu(work) / count * 1e6 for _ in range(REPEATS)]}


if __name__ == "__main__":
    main()
