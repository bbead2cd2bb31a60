"""Which tokens of an entry stand at which node: the only difference between R^t, R^t+ and R^t++.

An entry's tokens are kept in the order in which they represent it (`representative_tokens`). A node at level i, counted from the
root's children (1) to the leaves (H), holds of each entry below it:

| policy         | tokens                                                    | paper       |
|----------------|-----------------------------------------------------------|-------------|
| `RT`           | all of them                                               | section 3.1 |
| `RT_PLUS`      | the first                                                 | section 4.1 |
| `RT_PLUS_PLUS` | the i-th; a leaf also all that follow it                  | section 5.1 |

Tokens are word codes + 1. Token ALWAYS (0) is in every message and is the only token of an entry without words, so that one
rule serves all entries.

| array        | shape, dtype  | meaning                                                                     |
|--------------|---------------|-----------------------------------------------------------------------------|
| `name`       | entry, int32  | what the caller calls it                                                    |
| `same`       | entry, int32  | the next entry of the same name, -1 at the end; the next free entry if free  |
| `word_start` | entry, int64  | its tokens are token[word_start:word_start + word_count]                     |
| `word_count` | entry, int32  |                                                                             |
| `token`      | -, int32      |                                                                             |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Int32, Int64
from tidings.index.rttree.body import ROOT, Body, attach, detach, entries_below, refit
from tidings.index.rttree.tokens import (
    FULL,
    KEYS,
    Tokens,
    append,
    claim,
    empty_tokens,
    fill,
    key_of,
    lay_out_lists,
    remove,
    rooms,
    trimmed,
    with_space,
)

RT, RT_PLUS, RT_PLUS_PLUS = 0, 1, 2
POLICIES = {"R^t": RT, "R^t+": RT_PLUS, "R^t++": RT_PLUS_PLUS}
ALWAYS = 0


class Entries(NamedTuple):
    name: Int32
    same: Int32
    word_start: Int64
    word_count: Int32
    token: Int32

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def empty_entries() -> Entries:
    none = np.zeros(0, np.int32)
    return Entries(none, none, np.zeros(0, np.int64), none, none)


def take_rows(entries: Entries, rows: NDArray[np.integer]) -> tuple[Int64, Int32]:
    """The tokens of the entries in `rows`: row i has token[start[i]:start[i + 1]]."""
    count = entries.word_count[rows]
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(count, dtype=np.int64)])
    at = np.repeat(entries.word_start[rows] - start[:-1], count) + np.arange(start[-1])
    return start, entries.token[at]


def with_words(entries: Entries, used: int, body: Body, rows: Int32, count: Int64, token: Int32) -> tuple[Entries, int]:
    """`entries` as long as the body's, in which `rows`, not yet in the tree, have the given tokens; and the end of the used tokens.

    When space runs out the tokens of the live entries are brought together.
    """
    length = len(body.leaf)
    if length > len(entries.name):
        spare = length - len(entries.name)
        name, same, counts = (
            np.concatenate([old, np.zeros(spare, np.int32)]) for old in (entries.name, entries.same, entries.word_count)
        )
        entries = Entries(name, same, np.concatenate([entries.word_start, np.zeros(spare, np.int64)]), counts, entries.token)
    if used + len(token) > len(entries.token):
        live = np.flatnonzero(body.leaf >= 0)
        start, kept = take_rows(entries, live)
        entries.word_start[live] = start[:-1]
        used = len(kept)
        entries = entries._replace(token=np.concatenate([kept, np.empty(used // 2 + 2 * len(token), np.int32)]))
    entries.word_start[rows] = used + np.cumsum(count) - count
    entries.word_count[rows] = count
    entries.token[used : used + len(token)] = token
    return entries, used + len(token)


@borrowing_kernel
def token_range(policy: int, level: int, levels: int, count: int) -> tuple[int, int]:
    """Which of an entry's `count` tokens a node at `level` of `levels` holds: [first, last)."""
    if policy == RT:
        return 0, count
    if policy == RT_PLUS:
        return 0, 1
    first = min(level - 1, count)
    return first, count if level == levels else min(level, count)


@borrowing_kernel
def post(body: Body, tokens: Tokens, entries: Entries, policy: int, node: int, entry: int, add: bool) -> None:
    """Add the entry's tokens to the node's, or remove them."""
    levels = body.height[body.state[ROOT]]
    first, last = token_range(policy, levels - body.height[node], levels, entries.word_count[entry])
    start = entries.word_start[entry]
    for at in range(start + first, start + last):
        key = key_of(node, entries.token[at])
        if add:
            append(tokens, key, entry)
        else:
            remove(tokens, key, entry)


@borrowing_kernel
def post_path(body: Body, tokens: Tokens, entries: Entries, policy: int, entry: int, add: bool) -> None:
    """`post` for every node above the entry, the root excepted: it has no token set, for it is always visited."""
    node = wide(body.leaf[entry])
    while body.parent[node] >= 0:
        post(body, tokens, entries, policy, node, entry, add)
        node = wide(body.parent[node])


@kernel
def move_children(
    body: Body, tokens: Tokens, entries: Entries, policy: int, giver: int, taker: int, children: Int32, posted: bool
) -> None:
    """Hang `children` from one sibling to another, with their tokens where the nodes have them (`posted`)."""
    for i in range(len(children)):
        child = wide(children[i])
        if posted and body.height[giver] == 0:
            post(body, tokens, entries, policy, giver, child, False)
            post(body, tokens, entries, policy, taker, child, True)
        elif posted:
            for below in entries_below(body, child):
                post(body, tokens, entries, policy, giver, wide(below), False)
                post(body, tokens, entries, policy, taker, wide(below), True)
        detach(body, giver, child)
        attach(body, taker, child)
    refit(body, giver)


def posted_tokens(body: Body, entries: Entries, policy: int) -> Tokens:
    """The token table of all entries of the tree, tightly packed."""
    lists = policy == RT_PLUS_PLUS
    live = np.flatnonzero(body.leaf >= 0).astype(np.int32)
    tokens, done = empty_tokens(1024, 0, False), 0
    while done < len(live):
        tokens = with_space(tokens, max(int(tokens.state[KEYS]), 1024), 0)
        done = _count_all(body, tokens, entries, policy, live, done)
    tokens = trimmed(tokens)
    if lists:
        tokens = tokens._replace(start=np.empty(len(tokens.key), np.int32), posting=np.empty(rooms(tokens.held), np.int32))
        lay_out_lists(tokens)
        _fill_all(body, tokens, entries, policy, live)
    return tokens


@kernel
def _count_all(body: Body, tokens: Tokens, entries: Entries, policy: int, live: Int32, done: int) -> int:
    """Count the tokens of the entries from live[done] on at all their nodes; returns where the table became full."""
    levels = body.height[body.state[ROOT]]
    for i in range(done, len(live)):
        entry = wide(live[i])
        count = entries.word_count[entry]
        if tokens.state[KEYS] + levels * count > FULL * len(tokens.key):
            return i
        node = wide(body.leaf[entry])
        while body.parent[node] >= 0:
            first, last = token_range(policy, levels - body.height[node], levels, count)
            for at in range(entries.word_start[entry] + first, entries.word_start[entry] + last):
                tokens.held[claim(tokens, key_of(node, entries.token[at]))] += 1
            node = wide(body.parent[node])
    return len(live)


@kernel
def _fill_all(body: Body, tokens: Tokens, entries: Entries, policy: int, live: Int32) -> None:
    levels = body.height[body.state[ROOT]]
    for entry in live:
        node = wide(body.leaf[entry])
        while body.parent[node] >= 0:
            first, last = token_range(policy, levels - body.height[node], levels, entries.word_count[entry])
            for at in range(entries.word_start[entry] + first, entries.word_start[entry] + last):
                fill(tokens, key_of(node, entries.token[at]), entry)
            node = wide(body.parent[node])
