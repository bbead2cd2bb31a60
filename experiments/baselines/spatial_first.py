"""Spatial-first: an R-tree of the boxes, then the words. [rttree, section 2.3, after Samet 2006]

The same packed R-tree body as the R^t trees', without tokens. `similar_batch` scores what the message touches; where the words
alone may suffice (1 - alpha >= theta) it has no choice but to score everyone.
"""

from __future__ import annotations

import numpy as np

from experiments.baselines.batches import in_batches, stamp_words
from tidings._jit import kernel
from tidings.index.rttree.body import MOST, ROOT, hilbert_order, pack, touch
from tidings.index.rttree.policy import Entries, take_rows
from tidings.rank.similarity import shared_weight, similarity, spatial_part, textual_part, weights_of


class SpatialFirst:
    def __init__(self, clauses):
        order = hilbert_order(clauses.box)
        self.body = pack(np.ascontiguousarray(clauses.box[order]))
        none = np.zeros(0, np.int32)
        given = Entries(none, none, clauses.word_start[:-1], np.diff(clauses.word_start).astype(np.int32), clauses.word)
        self.start, self.word = take_rows(given, order)
        self.name = order.astype(np.int32)
        self._vocabulary = int(clauses.word.max(initial=-1)) + 1

    def match_batch(self, events):
        stamp, touched = np.zeros(self._vocabulary, np.int32), np.empty(len(self.name), np.int32)
        event, entry = in_batches(lambda *asked: match_all(self.body, self.start, self.word, *asked, stamp, touched), events)
        return event, self.name[entry]

    def similar_batch(self, events, alpha, theta, idf):
        weight, stamp, total = weights_of(self.start, self.word, idf), np.zeros(self._vocabulary, np.int32), 0
        out = np.empty(len(self.name), np.int32)
        for event in range(len(events)):
            stamp_words(events.word[events.word_start[event] : events.word_start[event + 1]], stamp, event + 1)
            if 1.0 - alpha >= theta:
                candidates = np.arange(len(out), dtype=np.int32)
            else:
                candidates = out[: touched_with_words(self.body, self.start, self.word, events.box[event], stamp, -1, out)]
            total += score_all(
                self.body.entry_box,
                self.start,
                self.word,
                weight,
                idf,
                events.box[event],
                stamp,
                event + 1,
                alpha,
                theta,
                candidates,
            )
        return total

    @property
    def nbytes(self):
        return self.body.nbytes + self.start.nbytes + self.word.nbytes + self.name.nbytes


@kernel
def match_all(body, start, word, message, word_start, message_word, first, out_event, out, stamp, touched):
    """The messages from `first` on until `out` is full: (the message to go on with, matches written)."""
    written = 0
    for event in range(first, len(message)):
        stamp_words(message_word[word_start[event] : word_start[event + 1]], stamp, event + 1)
        found = touched_with_words(body, start, word, message[event], stamp, event + 1, touched)
        if written + found > len(out):
            return event, written
        out_event[written : written + found] = event
        out[written : written + found] = touched[:found]
        written += found
    return len(message), written


@kernel
def touched_with_words(body, start, word, message, stamp, number, out):
    """The entries that touch the message and whose words all carry the stamp `number`; with -1, whatever their words."""
    found = 0
    stack = np.empty((body.height[body.state[ROOT]] + 1) * (MOST + 1), np.int32)
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        for at in range(body.degree[node]):
            child = body.child[node, at]
            if body.height[node] > 0:
                if touch(body.box[child], message):
                    stack[depth] = child
                    depth += 1
            elif touch(body.entry_box[child], message):
                holds = True
                for i in range(start[child], start[child + 1]):
                    if number >= 0 and stamp[word[i]] != number:
                        holds = False
                        break
                if holds:
                    out[found] = child
                    found += 1
    return found


@kernel
def score_all(box, start, word, weight, idf, message, stamp, number, alpha, theta, candidates):
    found = 0
    for entry in candidates:
        shared = shared_weight(word, start[entry], start[entry + 1], idf, stamp, number)
        found += similarity(alpha, spatial_part(box, entry, message), textual_part(shared, weight[entry])) >= theta
    return found
