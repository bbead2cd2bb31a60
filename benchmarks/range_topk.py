"""Range top-k: messages generated, messages applied, and batches, with 10,000 objects, 1 million watchers and k = 10.

Paint-Sparse and Paint-Dense run beside Unicast, which tries every candidate watcher, on the same updates; all in process time. See
`range_topk_boards` for how a topic keeps its lists, beside painting and beside doing nothing clever.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from experiments.baselines.unicast import unicast_updates
from experiments.range_topk_data import synthetic
from experiments.report import provenance
from tidings.boards.paint.batch import coalesce, paint_batch
from tidings.boards.paint.paint import PaintDense, PaintSparse
from tidings.boards.paint.watch_lists import WatchLists

RESULT = Path(__file__).parent / "results" / "range_topk.json"
WATCHERS, EVENTS, BATCH, K, REPEATS = 1_000_000, 20_000, 50_000, 10, 3


def rates(work, prepare, amount):
    """Amounts a second of process time, once a repeat; the first, which may compile, is not counted."""
    measured = []
    for _ in range(REPEATS + 1):
        state = prepare()
        start = time.process_time()
        done = work(state)
        measured.append((amount if amount is not None else done) / (time.process_time() - start))
    return measured[1:]


def main() -> None:
    workload = synthetic(WATCHERS, EVENTS)
    tree = workload.watchers()
    first = tuple(column[:2_000] for column in workload.updates)
    results = {
        "Paint-Sparse updates/s": rates(
            lambda painter: painter.update_many(*workload.updates), lambda: PaintSparse(workload.objects(), K, tree), EVENTS
        ),
        "Paint-Dense updates/s": rates(
            lambda painter: painter.update_many(*workload.updates), lambda: PaintDense(workload.objects(), K), EVENTS
        ),
        "Unicast updates/s": rates(
            lambda objects: unicast_updates(objects.arrays, tree.arrays, workload.points, K, *first),
            workload.objects,
            len(first[0]),
        ),
    }
    few = PaintSparse(workload.objects(), K, tree)
    messages, _ = few.update_many(*first)
    ties = few.objects.arrays.tie

    def lists():
        fresh = WatchLists(K, WATCHERS)
        fresh.arrays.span[:] = workload.points
        fresh.apply(messages, tree, ties)
        fresh.deliveries = 0
        return fresh

    def apply(fresh):
        fresh.apply(messages, tree, ties)
        return fresh.deliveries

    results["list updates/s"] = rates(apply, lists, None)
    batch = synthetic(WATCHERS, BATCH)
    online, _ = PaintSparse(batch.objects(), K, tree).update_many(*batch.updates)
    objects = batch.objects()
    together = paint_batch(PaintSparse(objects, K, tree), *coalesce(*batch.updates))
    results["messages of a batch, online / batch"] = [len(online) / len(together)]
    for name, values in results.items():
        print(f"{name:40} best {max(values):>14,.1f}   of {len(values)}, worst {min(values):,.1f}")
    RESULT.write_text(json.dumps({"run": provenance(), "watchers": WATCHERS, "k": K, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
