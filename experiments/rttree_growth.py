"""Figures 11 and 12 of the location-aware paper: more subscriptions, and subscriptions that come and go."""

from __future__ import annotations

import numpy as np

from experiments.report import cpu_seconds
from experiments.rttree_data import GROUPS, clause_columns
from experiments.rttree_race import microseconds, progress, some, tree

PAPER_OPERATIONS = {"short point": 600, "long range": 60}


def figures_11_and_12(report, drawn):
    steps = [drawn.count * share // 5 for share in range(1, 6)]
    times, throughput = {group: [] for group in GROUPS}, {group: [] for group in GROUPS}
    for count in steps:
        both = report.kept(f"figures 11 and 12, {count:,}", lambda: grown(drawn, count))  # noqa: B023
        for group in GROUPS:
            times[group].append((count, both["times"][group]))
            throughput[group].append((count, both["throughput"][group]))
        progress(f"Figures 11 and 12: {count:,} subscriptions")
    report.figure("figure_11", times, "subscriptions", "us a message", caption="Figure 11: scalability of R^t++")
    caption = "Figure 12: throughput of R^t++, 80 % messages, 10 % insertions, 10 % deletions"
    report.figure("figure_12", throughput, "subscriptions", "operations a second", caption=caption, logy=True)
    growth = {group: line[-1][1] / line[0][1] for group, line in times.items()}
    holds = all(g < 5 for g in growth.values())
    report.claim(
        "Figure 11: time grows less than the number of subscriptions",
        holds,
        "five times the subscriptions take " + ", ".join(f"{group} {g:.1f}x" for group, g in growth.items()),
        "" if holds else "A message has five times the matches, and what a small tree has in the caches a large one has not.",
    )
    for group, least in PAPER_OPERATIONS.items():
        rate = throughput[group][-1][1]
        report.claim(
            f"Figure 12: at least {least} operations a second with {group} messages (the paper at 10 million)",
            rate >= least,
            f"{rate:.0f} operations a second at {steps[-1]:,}",
        )


def grown(drawn, count):
    """Microseconds a message and operations a second with the first `count` subscriptions."""
    data, clauses = drawn.data, drawn.clauses
    index, found = tree("R^t++", "idf", head(clauses, count)), {"times": {}, "throughput": {}}
    for group in GROUPS:
        found["times"][group] = microseconds(index.match_batch, data.messages(group, 400 if group.startswith("short") else 50))
        operations_a_second(index, clauses, data.messages(group, 80))
        mixed = data.messages(group, 800 if group.startswith("short") else 80)
        found["throughput"][group] = operations_a_second(index, clauses, mixed)
    return found


def head(clauses, count):
    """The first `count` clauses."""
    return clause_columns(clauses.box[:count], clauses.word_start[: count + 1], clauses.word[: clauses.word_start[count]])


def only(clauses, row):
    """One clause."""
    first, last = clauses.word_start[row : row + 2]
    return clause_columns(clauses.box[row : row + 1], np.array([0, last - first]), clauses.word[first:last])


def operations_a_second(index, clauses, events):
    """Eight messages, an insertion and a deletion again and again, a call each: 80 / 10 / 10 %."""
    fresh, spent, operations = len(clauses), 0.0, 0
    for first in range(0, len(events), 8):
        batch = some(events, first, min(first + 8, len(events)))
        name = np.array([fresh], np.int32)
        one = only(clauses, fresh % len(clauses))
        spent += cpu_seconds(lambda: (index.insert(name, one), index.match_batch(batch), index.delete(name)), 1)  # noqa: B023
        operations += len(batch) + 2
        fresh += 1
    return operations / spent
