"""What a home in an R^t++ tree costs, from statistics alone: for a planner that compares it with other homes.

A message looks up each of its words at every node it reaches, which is shared by all clauses, and reads an entry wherever it has
the entry's first word and touches the entry's node of level 1. The nodes of a packed level tile the occupied area, so a level of N
nodes has sides of about 1 / sqrt(N) of the extent, widened by the boxes themselves. A long message reads the leaves it touches
instead of its words' lists where that is less (`filtering.WORDS_A_LEAF`).
"""

from __future__ import annotations

import numpy as np

from tidings.index.packed.types import Float64
from tidings.index.rttree.body import level_sizes
from tidings.index.rttree.filtering import LONG, WORDS_A_LEAF

WALK, WORD, LOOKUP, POSTING = 400.0, 10.0, 70.0, 20.0
"""Nanoseconds for a message at all, for each of its words, for a word looked up at a node and for an entry read from a list, on one
core with tables beyond the caches."""


def price(clauses: int, words: float, box_share: Float64, first_word_share: Float64) -> Float64:
    """Nanoseconds that a message spends on each clause, on average.

    `clauses` is how many there will be in the tree and `words` how many known words a message has; for each clause, `box_share` is
    the share of messages that touch its box and `first_word_share` the share that have its rarest word.
    """
    if not len(box_share):
        return np.zeros(0)
    leaves, nodes = level_sizes(clauses)[0], level_sizes(clauses)[-2]
    reached = touched_share(nodes, box_share)
    postings: Float64 = POSTING * first_word_share * reached
    whole = WALK + WORD * words
    lookups = LOOKUP * words * nodes * float(reached.mean())
    read = LOOKUP * WORDS_A_LEAF * leaves * float(touched_share(leaves, box_share).mean())
    if words >= LONG and read < lookups:
        return np.full(len(box_share), (whole + read) / clauses)
    return postings + (whole + lookups) / clauses


def touched_share(nodes: int, box_share: Float64) -> Float64:
    """The share of messages that touch the node, of a level of so many, above a clause; by the share that touch its own box."""
    share: Float64 = np.minimum((np.sqrt(1.0 / nodes) + np.sqrt(box_share)) ** 2, 1.0)
    return share
