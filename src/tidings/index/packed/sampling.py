"""How many clauses of a packed structure match an event, from a sample of them: what a price needs and a match would cost too much.

`Sample` holds SIZE slots taken evenly, with the word under which each is posted (NONE: none). A hit is one slot that an event
matches; h hits of m events over s slots of n clauses mean n * h / (m * s) matches an event, and where there is none at all half a
hit is assumed. Cost: a few nanoseconds a slot and event, since most fail at their first predicate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import kernel
from tidings.index.packed.record import Events, Packed, box_thresholds, contains, holds
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Int32, Int64

SIZE = 1024


class Sample(NamedTuple):
    slot: Int64
    word: Int32


def sample_slots(n: int) -> Int64:
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, SIZE)).astype(np.int64))


def expected_matches(packed: Packed, sample: Sample, events: Events, probed: int) -> float:
    """Matches an event, as the first `probed` events have them."""
    pairs = probed * len(sample.slot)
    return len(packed.row) * max(count_hits(packed, sample, events, probed), 0.5) / pairs if pairs else 0.0


@kernel
def count_hits(packed: Packed, sample: Sample, events: Events, probed: int) -> int:
    thresholds = np.empty((1, 4), packed.box.dtype)
    hits = 0
    for event in range(probed):
        box_thresholds(events.box, event, packed.place[0], thresholds, 0)
        words = events.word[events.word_start[event] : events.word_start[event + 1]]
        for i in range(sample.slot.size):
            if sample.word[i] == NONE or contains(words, np.float64(sample.word[i])):
                hits += holds(packed, sample.slot[i], events, event, thresholds, 0)
    return hits
