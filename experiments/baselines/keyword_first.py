"""Keyword-first: inverted lists of all words, then the box. [rttree, section 2.3, after Yan and Garcia-Molina 1994]

Every subscription is posted under each of its words; a message counts, along the lists of its words, how many words of each
subscription it has, and those with all of them have their box tested. `similar_batch` adds weights instead of counting; where a
place alone may suffice (alpha >= theta) all other subscriptions are scored as well.
"""

from __future__ import annotations

import numpy as np

from experiments.baselines.batches import in_batches
from tidings._jit import kernel
from tidings.rank.similarity import similarity, spatial_part, textual_part, weights_of


class KeywordFirst:
    def __init__(self, clauses):
        self.box, count = clauses.box, np.diff(clauses.word_start)
        self.count = count.astype(np.int32)
        owner = np.repeat(np.arange(len(count), dtype=np.int32), count)
        order = np.argsort(clauses.word, kind="stable")
        vocabulary = int(clauses.word.max(initial=-1)) + 1
        self.start = np.searchsorted(clauses.word[order], np.arange(vocabulary + 1))
        self.posting = owner[order]
        self._words = (clauses.word_start, clauses.word)

    def match_batch(self, events):
        seen, met = np.zeros(len(self.count), np.int32), np.empty(len(self.count), np.int32)
        return in_batches(
            lambda *asked: match_all(self.box, self.count, self.start, self.posting, *asked, seen, met),
            events,
        )

    def similar_batch(self, events, alpha, theta, idf):
        weight = weights_of(*self._words, idf)
        shared, met, total = np.zeros(len(weight)), np.empty(len(weight), np.int32), 0
        for event in range(len(events)):
            words = events.word[events.word_start[event] : events.word_start[event + 1]]
            lists = (self.start, self.posting, words[words < len(self.start) - 1])
            total += add_weights(self.box, weight, idf, *lists, events.box[event], alpha, theta, shared, met)
        return total

    @property
    def nbytes(self):
        return self.box.nbytes + self.count.nbytes + self.start.nbytes + self.posting.nbytes


@kernel
def match_all(box, count, start, posting, message, word_start, word, first, out_event, out, seen, met):
    """The messages from `first` on until `out` is full: (the message to go on with, matches written)."""
    written = 0
    for event in range(first, len(message)):
        words = word[word_start[event] : word_start[event + 1]]
        found = count_words(box, count, start, posting, words, message[event], seen, met)
        if written + found > len(out):
            return event, written
        out_event[written : written + found] = event
        out[written : written + found] = met[:found]
        written += found
    return len(message), written


@kernel
def count_words(box, count, start, posting, words, message, seen, met):
    """Leaves the matches at the front of `met`."""
    touched, found = 0, 0
    for word in words:
        if word + 1 >= len(start):
            continue
        for subscription in posting[start[word] : start[word + 1]]:
            if seen[subscription] == 0:
                met[touched] = subscription
                touched += 1
            seen[subscription] += 1
    for at in range(touched):
        subscription = met[at]
        if seen[subscription] == count[subscription] and (
            box[subscription, 0] <= message[2]
            and message[0] <= box[subscription, 2]
            and box[subscription, 1] <= message[3]
            and message[1] <= box[subscription, 3]
        ):
            met[found] = subscription
            found += 1
        seen[subscription] = 0
    return found


@kernel
def add_weights(box, weight, idf, start, posting, words, message, alpha, theta, shared, met):
    """How many subscriptions are similar enough."""
    touched, found = 0, 0
    for word in words:
        for subscription in posting[start[word] : start[word + 1]]:
            if shared[subscription] == 0.0:
                met[touched] = subscription
                touched += 1
            shared[subscription] += idf[word]
    if alpha >= theta:
        for subscription in range(len(weight)):
            value = similarity(
                alpha, spatial_part(box, subscription, message), textual_part(shared[subscription], weight[subscription])
            )
            found += value >= theta
    for at in range(touched):
        subscription = met[at]
        if alpha < theta:
            value = similarity(
                alpha, spatial_part(box, subscription, message), textual_part(shared[subscription], weight[subscription])
            )
            found += value >= theta
        shared[subscription] = 0.0
    return found
