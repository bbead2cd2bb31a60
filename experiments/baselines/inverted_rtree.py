"""IR-tree: an R-tree whose nodes each have an inverted index of their children. [rttree, section 2.3, after Cong et al. 2009]

A node's inverted index leads from a token to the children (entries in a leaf) that have it; a message reads the lists of its
words, and goes on with the children that it touches and that share a word. All nodes' indexes lie in one hash table (`Tokens`).
The entries of a leaf that share a word are verified. `similar_batch` sums, for each child, the weights of the message's words it
has, and prunes by equation 4; a child that shares no word is visited if its box or nothing at all may suffice.
"""

from __future__ import annotations

import numpy as np

from experiments.baselines.batches import in_batches, stamp_words
from tidings._jit import kernel
from tidings.index.rttree.body import MOST, ROOT, hilbert_order, pack, touch
from tidings.index.rttree.policy import RT, Entries, posted_tokens, take_rows
from tidings.index.rttree.tokens import claim, empty_tokens, fill, find, key_of, lay_out_lists, rooms
from tidings.rank.similarity import SLACK, shared_weight, similarity, spatial_part, textual_part, weights_of


class InvertedRtree:
    def __init__(self, clauses):
        order = hilbert_order(clauses.box)
        self.body = pack(np.ascontiguousarray(clauses.box[order]))
        none = np.zeros(0, np.int32)
        given = Entries(none, none, clauses.word_start[:-1], np.diff(clauses.word_start).astype(np.int32), clauses.word)
        self.start, self.word = take_rows(given, order)
        self.name = order.astype(np.int32)
        self.tokens = _tokens(self.body, self.start, self.word)
        self._vocabulary = int(clauses.word.max(initial=-1)) + 1

    def match_batch(self, events):
        stamp, matching = np.zeros(self._vocabulary, np.int32), np.empty(len(self.name), np.int32)
        tree = (self.body, self.tokens, self.start, self.word)
        event, entry = in_batches(lambda *asked: match_all(*tree, *asked, stamp, matching), events)
        return event, self.name[entry]

    def similar_batch(self, events, alpha, theta, idf):
        weight, stamp, total = weights_of(self.start, self.word, idf), np.zeros(self._vocabulary, np.int32), 0
        area = (
            (self.body.entry_box[:, 2] - self.body.entry_box[:, 0]) * (self.body.entry_box[:, 3] - self.body.entry_box[:, 1])
        ).min()
        for event in range(len(events)):
            words = self._known(events, event, stamp)
            tree = (self.body, self.tokens, self.start, self.word, weight, idf)
            total += similar(*tree, events.box[event], words, stamp, event + 1, alpha, theta, weight.min(), area)
        return total

    def _known(self, events, event, stamp):
        words = events.word[events.word_start[event] : events.word_start[event + 1]]
        stamp_words(words, stamp, event + 1)
        return words

    @property
    def nbytes(self):
        return self.body.nbytes + self.tokens.nbytes + self.start.nbytes + self.word.nbytes + self.name.nbytes


def _tokens(body, start, word):
    """The inverted indexes: a child stands in its parent's list of each token in the child's set, an entry in its leaf's."""
    none, count = np.zeros(0, np.int32), np.diff(start)
    sets = posted_tokens(body, Entries(none, none, start[:-1], count.astype(np.int32), word), RT)
    live = sets.key[sets.held > 0]
    entry = np.repeat(np.arange(len(count)), count)
    node = np.concatenate([body.parent[live >> 32], body.leaf[entry]]).astype(np.int64)
    key = node << 32 | np.concatenate([live & 0xFFFFFFFF, word])
    tokens = empty_tokens(len(np.unique(key)), 0, True)
    _count(tokens, key)
    tokens = tokens._replace(posting=np.empty(int(rooms(tokens.held)), np.int32))
    lay_out_lists(tokens)
    _fill(tokens, key, np.concatenate([live >> 32, entry]))
    return tokens


@kernel
def _count(tokens, key):
    for k in key:
        tokens.held[claim(tokens, k)] += 1


@kernel
def _fill(tokens, key, child):
    for at in range(len(key)):
        fill(tokens, key[at], child[at])


@kernel
def match_all(body, tokens, start, word, message, word_start, message_word, first, out_event, out, stamp, matches):
    """The messages from `first` on until `out` is full: (the message to go on with, matches written)."""
    written, mark = 0, np.zeros(len(body.degree), np.int32)
    for event in range(first, len(message)):
        words = message_word[word_start[event] : word_start[event + 1]]
        stamp_words(words, stamp, event + 1)
        found = matching(body, tokens, start, word, message[event], words, stamp, event + 1, mark, matches)
        if written + found > len(out):
            return event, written
        out_event[written : written + found] = event
        out[written : written + found] = matches[:found]
        written += found
    return len(message), written


@kernel
def matching(body, tokens, start, word, message, words, stamp, number, mark, out):
    """Leaves the matches in `out`; `mark` carries the number of the last message that put a node on the stack."""
    found = 0
    stack = np.empty((body.height[body.state[ROOT]] + 1) * (MOST + 1), np.int32)
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        for token in words:
            slot = find(tokens, key_of(node, token))
            if slot < 0:
                continue
            first = np.int64(tokens.start[slot])
            for child in tokens.posting[first : first + tokens.held[slot]]:
                if body.height[node] > 0:
                    if mark[child] != number and touch(body.box[child], message):
                        mark[child] = number
                        stack[depth] = child
                        depth += 1
                elif touch(body.entry_box[child], message):
                    # An entry stands in the list of each word it shares; it is verified at the first of its own.
                    holds = word[start[child]] == token
                    for at in range(start[child], start[child + 1]):
                        holds = holds and stamp[word[at]] == number
                    if holds:
                        out[found] = child
                        found += 1
    return found


@kernel
def similar(body, tokens, start, word, weight, idf, message, words, stamp, number, alpha, theta, least_weight, least_area):
    """How many entries are similar enough, by equation 4 with the least weight and area of all."""
    found = 0
    stack = np.empty((body.height[body.state[ROOT]] + 1) * (MOST + 1), np.int32)
    shared = np.zeros(len(body.degree))
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if body.height[node] == 0:
            for at in range(body.degree[node]):
                entry = body.child[node, at]
                got = shared_weight(word, start[entry], start[entry + 1], idf, stamp, number)
                found += similarity(alpha, spatial_part(body.entry_box, entry, message), textual_part(got, weight[entry])) >= theta
            continue
        for token in words:
            slot = find(tokens, key_of(node, token))
            if slot >= 0:
                first = np.int64(tokens.start[slot])
                for child in tokens.posting[first : first + tokens.held[slot]]:
                    shared[child] += idf[token]
        for at in range(body.degree[node]):
            child = body.child[node, at]
            box, spatial = body.box[child], 0.0
            if touch(box, message):
                width, height = min(box[2], message[2]) - max(box[0], message[0]), min(box[3], message[3]) - max(box[1], message[1])
                point = message[0] == message[2] and message[1] == message[3]
                spatial = 1.0 if point or least_area == 0.0 else min(1.0, width * height / least_area)
            if similarity(alpha, spatial, min(1.0, shared[child] / least_weight)) >= theta - SLACK:
                stack[depth] = child
                depth += 1
    return found
