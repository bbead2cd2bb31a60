"""Boxes and words beside their peers, in one run: `python -m benchmarks.rttree [n] [n for similarity]`.

R^t++ beside the product's rarest-word lists and the paper's comparators on the four groups of messages; a mix of 80 % messages,
10 % insertions and 10 % deletions; similarity (alpha = theta = 0.5) beside a scan of everyone. Process CPU time, the least of
several repeats; raw results go to benchmarks/results/rttree.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from experiments.baselines.keyword_first import KeywordFirst
from experiments.baselines.spatial_first import SpatialFirst
from experiments.report import cpu_seconds, markdown, provenance
from experiments.rttree_data import GROUPS, VOCABULARY, Twitter
from experiments.rttree_growth import head, operations_a_second
from experiments.rttree_race import some, tree
from experiments.rttree_similarity import similarity_index
from tidings.index.blocks.words import WordBlocks
from tidings.rank.similarity import idf

RESULTS = Path(__file__).parent / "results" / "rttree.json"
MESSAGES = {"short point": 2000, "short range": 1000, "long point": 50, "long range": 50}


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    similar = int(sys.argv[2]) if len(sys.argv) > 2 else min(n, 1_000_000)
    data = Twitter()
    clauses = data.subscriptions(n)
    batches = {group: data.messages(group, MESSAGES[group]) for group in GROUPS}
    result = {"n": n, "run": provenance(), "match": matching(clauses, batches), "mix": mix(clauses, data)}
    result["similarity"] = similarity(head(clauses, similar), data.messages("short point", 100))
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for name in ("match", "mix", "similarity"):
        print(f"\n{name}\n\n{markdown(result[name])}", flush=True)


def matching(clauses, batches):
    """Messages a second of each structure, one after another so that only one is in memory."""
    makers = {
        "R^t++": lambda: tree("R^t++", "idf", clauses),
        "rarest-word lists": lambda: WordBlocks.build(clauses),
        "keyword-first": lambda: KeywordFirst(clauses),
        "spatial-first": lambda: SpatialFirst(clauses),
    }
    rows = []
    for label, make in makers.items():
        made = []
        seconds = cpu_seconds(lambda: made.append(make()), repeats=1)  # noqa: B023
        row = {"structure": label, "build s": round(seconds, 2), "B a subscription": round(made[0].nbytes / len(clauses))}
        for group, batch in batches.items():
            few = batch if label in ("R^t++", "rarest-word lists") else some(batch, 0, min(50, len(batch)))
            made[0].match_batch(few)
            row[f"{group}, messages/s"] = round(len(few) / cpu_seconds(lambda: made[0].match_batch(few)))  # noqa: B023
        rows.append(row)
        print(row, flush=True)
    return rows


def mix(clauses, data):
    index = tree("R^t++", "idf", clauses)
    operations_a_second(index, clauses, data.messages("short point", 80))
    return [
        {
            "messages": group,
            "operations/s": round(
                operations_a_second(index, clauses, data.messages(group, 2000 if group == "short point" else 80))
            ),
        }
        for group in ("short point", "long range")
    ]


def similarity(clauses, events):
    weights = idf(np.bincount(clauses.word, minlength=VOCABULARY), len(clauses))
    scan, few = SpatialFirst(clauses), some(events, 0, 10)
    index = similarity_index(clauses, 0.5, 0.5, weights, "R^t++")
    assert len(index.match_batch(few)[0]) == scan.similar_batch(few, 0.5, 0.5, weights)
    ours = cpu_seconds(lambda: index.match_batch(events)) / len(events)
    theirs = cpu_seconds(lambda: scan.similar_batch(few, 0.5, 0.5, weights)) / len(few)
    return [{"subscriptions": len(clauses), "R^t++ us": ours * 1e6, "scan us": theirs * 1e6, "ratio": theirs / ours}]


if __name__ == "__main__":
    main()
