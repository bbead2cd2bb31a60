"""How the location-aware experiments measure: indexes race on the same messages, one in memory after another.

Times are process CPU time of one core for each message, the least of REPEATS runs over a batch.
"""

from __future__ import annotations

import time
from functools import cached_property, partial
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from experiments.report import cpu_seconds
from experiments.rttree_data import GROUPS, LOCAL, Twitter
from tidings.index.rttree.tree import RtTree
from tidings.model.columns.arrays import EventColumns

REPEATS = 3
SLOW = 0.5
"""Seconds from which on one run of a batch is enough."""
LENGTHS = {"short": (5, 10, 15, 20), "long": (100, 400, 700, 1000)}


def progress(text: str) -> None:
    print(f"  {text}", flush=True)


class Drawn:
    """The Twitter-like subscriptions and the messages of the figures, drawn when a figure needs them."""

    def __init__(self, count):
        self.count, self.data = count, Twitter(fit=LOCAL)

    @cached_property
    def clauses(self):
        return self.data.subscriptions(self.count)

    @cached_property
    def groups(self):
        return {group: by_length(self.data, group) for group in GROUPS}


def by_length(data, group):
    """A batch of messages for each number of words on the figures' x axis."""
    kind = group.split()[0]
    return {length: data.messages(group, 100 if kind == "short" else 20, length) for length in LENGTHS[kind]}


def cells_a_side(subscriptions):
    """For the order "locality": a thousand subscriptions a cell, as in the paper."""
    return max(2, round((subscriptions / 1000) ** 0.5))


def tree(policy, order, clauses, **options):
    index = RtTree(policy, order, grid=cells_a_side(len(clauses)), **options)
    index.insert(np.arange(len(clauses), dtype=np.int32), clauses)
    return index


def some(events, first, last):
    """The messages first..last-1."""
    return EventColumns(events.value[first:last], events.box[first:last], events.word_start[first : last + 1], events.word)


def microseconds(match, events):
    """CPU microseconds a message, the least of REPEATS runs; one message warms up, and one run is enough where it is slow."""
    match(some(events, 0, 1))
    first = cpu_seconds(lambda: match(events), 1)
    again = [] if first > SLOW else [cpu_seconds(lambda: match(events), REPEATS)]
    return min([first, *again]) / len(events) * 1e6


def size_of(index):
    """Bytes without the dynamic frequencies, which the paper does not count either."""
    return index.nbytes - (index.frequencies.nbytes if isinstance(index, RtTree) else 0)


class Race:
    """What came of it: `mean[label, group]` microseconds a message, `counted[label, group]` the trees' counters a message at the
    greatest number of words, `size[label]` bytes."""

    def __init__(self, report, name, caption, makers, groups):
        self.title, self.groups, self.labels = caption.split(":")[0], list(groups), list(makers)
        self.mean, self.counted, self.size = {}, {}, {}
        series, answers = {group: {} for group in groups}, {}
        for label, make in makers.items():
            ran = report.kept(f"{self.title}, {label.replace('+', ' plus')}", partial(self._run, label, make, groups))
            self.size[label] = ran["size"]
            for group, one in ran["groups"].items():
                assert answers.setdefault(group, one["answer"]) == one["answer"], (label, group)
                series[group][label] = [tuple(point) for point in one["line"]]
                self.mean[label, group] = float(np.mean([y for _, y in one["line"]]))
                if "counted" in one:
                    self.counted[label, group] = one["counted"]
            progress(f"{self.title}: {label}: " + ", ".join(f"{group} {self.mean[label, group]:.0f} us" for group in groups))
        for group, lines in series.items():
            figure = f"{name}_{group.replace(' ', '_')}"
            report.figure(figure, lines, "words of the message", "us a message", caption=f"{caption}: {group}", logy=True)
        self._tell_counters(report, name)

    def _run(self, label, make, groups):
        """One index: its size, and for each group a digest of what it finds, the times by length, and what it counted."""
        begin = time.process_time()
        index, told = make(), {}
        progress(f"{self.title}: {label} is built in {time.process_time() - begin:.0f} s")
        for group, batches in groups.items():
            found = sorted_pairs(index.match_batch(next(iter(batches.values()))))
            line = [(length, microseconds(index.match_batch, batch)) for length, batch in batches.items()]
            told[group] = {"answer": blake2b(found.tobytes(), digest_size=16).hexdigest(), "line": line}
            if isinstance(index, RtTree):
                told[group]["counted"] = count(index, list(batches.values())[-1])
        return {"size": size_of(index), "groups": told}

    def _tell_counters(self, report, name):
        rows = [
            {"tree": label, "group": group, **{key: round(values[key], 1) for key in ("visited", "postings", "verified")}}
            for (label, group), values in self.counted.items()
        ]
        if rows:
            caption = f"{self.title}: nodes asked for tokens, postings read and entries verified a message of most words"
            report.table(f"{name}_counters", rows, caption)

    def verified(self, label):
        """Entries verified a message, summed over the groups."""
        return sum(self.counted[label, group]["verified"] for group in self.groups)

    def claim_order(self, report, *labels, groups=None, reason="", text=""):
        """The claim that the first label is fastest, then the next, in every group; `reason` is told where it fails."""
        groups = groups or self.groups
        for faster, slower in pairwise(labels):
            holds = all(self.mean[faster, group] < self.mean[slower, group] for group in groups)
            ratios = ", ".join(f"{group} {self.mean[slower, group] / self.mean[faster, group]:.2f}x" for group in groups)
            report.claim(f"{text or self.title}: {faster} is faster than {slower}", holds, ratios, "" if holds else reason)


def sorted_pairs(matches):
    event, name = (column.astype(np.int64) for column in matches)
    return np.sort(event << 32 | name)


def count(index, batch):
    """What the tree counts a message."""
    before = index.stats
    index.match_batch(batch)
    return {key: (value - before[key]) / len(batch) for key, value in index.stats.items()}
