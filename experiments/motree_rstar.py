"""The R*-tree built as the paper builds it, by insertion, at a size where that is possible.

Bulk loading (STR) slices along one dimension after the other, and with twenty the last are never reached; a tree built by insertion
is much better, and its matching moves with K_s as the paper says. So the trends are judged on this one.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.baselines.rstar_tree import RStarTree, match_clause, match_event
from experiments.motree_workload import Workload, dense_clauses, dense_events
from experiments.report import Report, cpu_seconds
from tidings.index.motree.tree import MOTree


def rstar_by_insertion(report: Report, axes: list, predicates: tuple, size: int) -> dict:
    """{(question, K_s): ms} of R*-trees built by insertion, told beside those bulk loaded and the MO-Tree."""
    times, rows = {}, []
    for count in predicates:
        work = Workload(predicates=count)
        clauses, events = work.clauses(size), work.events(size, seed=4)
        lo, hi = dense_clauses(clauses)
        values = dense_events(events)
        asked, asking = dense_events(work.events(50)), dense_clauses(work.clauses(50, seed=6))
        row = {"predicates a subscription": count}
        for label, build in (("bulk loaded", RStarTree), ("inserted", grown)):
            boxes, points = build(lo, hi), build(values, values)
            matching = cpu_seconds(partial(each_event, boxes, lo, hi, asked), 2) / len(asked) * 1e3
            searching = cpu_seconds(partial(each_clause, points, values, *asking), 2) / len(asked) * 1e3
            row |= {f"event matching, R*-tree {label}, ms": matching, f"subscription matching, R*-tree {label}, ms": searching}
            times["event matching", count], times["subscription matching", count] = matching, searching
        own = MOTree(axes, 6)
        own.insert(np.arange(size, dtype=np.int32), clauses)
        batch = work.events(50)
        own.match_batch(batch)
        row["event matching, MO-Tree, ms"] = cpu_seconds(partial(own.match_batch, batch)) / 50 * 1e3
        rows.append(row)
    report.table("rstar_by_insertion", rows, f"The R*-tree built by insertion, {size:,} items")
    return times


def grown(lo, hi) -> RStarTree:
    tree = RStarTree(lo[:1], hi[:1])
    for number in range(1, len(lo)):
        tree.insert(number, lo[number], hi[number])
    return tree


def each_event(tree: RStarTree, lo, hi, values) -> list:
    return [match_event(tree, lo, hi, value) for value in values]


def each_clause(tree: RStarTree, values, lo, hi) -> list:
    return [match_clause(tree, values, *ends) for ends in zip(lo, hi, strict=True)]
