"""What matching on an R^t tree writes on, kept from call to call.

Stamps and counts as long as the vocabulary and the tree would cost more to make afresh than a short message costs to match. Calls
may run beside each other: each takes a scratch nobody else uses and gives it back. Messages and visits are numbered on and on, so
that nothing has to be wiped in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel
from tidings.index.packed.types import Int32, Int64, Uint8, Uint16
from tidings.index.rttree.body import MOST, Body

MESSAGE, VISIT = 0, 1
HINTS = 1 << 14
"""Few enough to stay in the innermost cache, where the stamps of a vocabulary do not."""
LEAVES = 512
"""Leaves that may be gathered below a node before its lists are read after all."""
LAST_NUMBER = 1 << 30
"""Numbers begin again, on a new scratch, before they outgrow int32."""


class Scratch(NamedTuple):
    stamp: Int32
    """Vocabulary: the number of the last message that had the token."""
    hint: Uint8
    """HINTS: 1 where the message has a token with those last bits; 0 between messages."""
    asked: Int32
    """Vocabulary: the last visit that wanted the token."""
    seen: Uint16
    """Entry: how many of its tokens were met on the way down (the paper's hash map M); 0 between messages."""
    met: Int32
    """The entries with seen > 0, to set them back."""
    stack: Int32
    """Nodes to go on with."""
    want: Int32
    """Place on the stack x 2: first and end of that node's tokens in `wanted`."""
    wanted: Int32
    """The tokens that the entries counted at a node have next, each once, of one node of the stack after another."""
    leaves: Int32
    """LEAVES: leaves that a message touches."""
    number: Int64
    """The last MESSAGE and the last VISIT numbered."""


def scratch_for(body: Body, vocabulary: int) -> Scratch:
    entries, depth = len(body.leaf), (body.levels + 1) * (MOST + 1)
    return Scratch(
        stamp=np.zeros(vocabulary, np.int32),
        hint=np.zeros(HINTS, np.uint8),
        asked=np.zeros(vocabulary, np.int32),
        seen=np.zeros(entries, np.uint16),
        met=np.empty(entries, np.int32),
        stack=np.empty(depth, np.int32),
        want=np.empty((depth, 2), np.int32),
        wanted=np.empty(body.levels * entries + 1, np.int32),
        leaves=np.empty(LEAVES, np.int32),
        number=np.zeros(2, np.int64),
    )


class Scratches:
    """Those that no call uses now."""

    def __init__(self) -> None:
        self._idle: list[Scratch] = []

    @contextmanager
    def borrow(self, body: Body, vocabulary: int, messages: int) -> Iterator[Scratch]:
        """A scratch that fits the tree and has numbers left for so many messages."""
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = scratch_for(body, vocabulary)
        if not self._fits(scratch, body, vocabulary, messages):
            scratch = scratch_for(body, vocabulary)
        yield scratch
        self._idle.append(scratch)

    def _fits(self, scratch: Scratch, body: Body, vocabulary: int, messages: int) -> bool:
        levels, entries = body.levels, len(body.leaf)
        return (
            len(scratch.stamp) >= vocabulary
            and len(scratch.seen) >= entries
            and len(scratch.stack) >= (levels + 1) * (MOST + 1)
            and len(scratch.wanted) > levels * entries
            and max(int(scratch.number.max()), int(scratch.number[MESSAGE]) + messages) < LAST_NUMBER
        )


@borrowing_kernel
def put_on(scratch: Scratch, token: int, number: int) -> None:
    """Say that message `number` has the token."""
    scratch.stamp[token] = number
    scratch.hint[token & (HINTS - 1)] = 1


@borrowing_kernel
def take_off(scratch: Scratch, tokens: Int32) -> None:
    """The message that had these tokens is done."""
    for token in tokens:
        scratch.hint[token & (HINTS - 1)] = 0


@borrowing_kernel
def hinted(scratch: Scratch, token: int) -> bool:
    """Whether the message may have the token."""
    has: bool = scratch.hint[token & (HINTS - 1)] != 0
    return has


@borrowing_kernel
def on(scratch: Scratch, token: int, number: int) -> bool:
    """Whether message `number` has the token."""
    has: bool = hinted(scratch, token) and scratch.stamp[token] == number
    return has
