"""Batches of messages for the location-aware comparators: their loops over messages are compiled too, so that a call's overhead is
paid once a batch, as by the R^t trees."""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel
from tidings.index.rttree.filtering import FIRST_ROOM


def in_batches(match, events):
    """(event, entry) of every match. `match(boxes, word_start, word, first, out_event, out)` goes on until `out` is full and
    returns the message to go on with and how many matches it wrote."""
    done, room, parts = 0, max(FIRST_ROOM, 64 * len(events)), [(np.empty(0, np.int32), np.empty(0, np.int32))]
    while done < len(events):
        out_event, out = np.empty(room, np.int32), np.empty(room, np.int32)
        done, found = match(events.box, events.word_start, events.word, done, out_event, out)
        parts.append((out_event[:found], out[:found]))
        room *= 2
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


@kernel
def stamp_words(words, stamp, number):
    """Stamp those that are in the vocabulary."""
    for word in words:
        if word < len(stamp):
            stamp[word] = number
