"""The filtering algorithms of the R^t trees, as kernels: who hears of a message?

All share one walk: from the root down, into children whose box touches the message's and whose tokens give hope. A
message comes as its tokens (those that some entry has, and ALWAYS) and as a stamp on each token of the vocabulary that it has, so
that asking "does the message have this word?" is one read.

`stats` (4, int64) adds up the paper's counters: VISITED nodes whose tokens were looked at, POSTINGS read, VERIFIED entries whose
words were compared one by one, MESSAGES.

A kernel writes its matches into `out` from `found` on and returns how many `out` then holds; -1 if it did not have the space, and
then everything it wrote is to be forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.index.rt_body import MOST, ROOT, Body, touch, wide
from tidings.index.rt_policy import ALWAYS, RT_PLUS_PLUS, Entries
from tidings.index.rt_tokens import Tokens, find, has_any, key_of

VISITED, POSTINGS, VERIFIED, MESSAGES = 0, 1, 2, 3
FULL_OUT = -1


class Scratch(NamedTuple):
    """What matching writes on; of one call, so that calls may run beside each other."""

    stamp: NDArray[np.int32]
    """Vocabulary: the number of the last message that had the token."""
    seen: NDArray[np.uint16]
    """Entry: how many of its tokens were met on the way down (the paper's hash map M)."""
    met: NDArray[np.int32]
    """The entries with seen > 0, to set them back."""
    stack: NDArray[np.int32]
    """Nodes to go on with."""
    want: NDArray[np.int32]
    """Place on the stack x 2: first and end of that node's tokens in `wanted`."""
    wanted: NDArray[np.int32]
    """The tokens that the entries counted at a node have next, each once, of one node of the stack after another."""
    asked: NDArray[np.int32]
    """Token: the last visit that wanted it."""
    visit: NDArray[np.int64]
    """1: visits of this call."""
    stats: NDArray[np.int64]


def scratch_for(body: Body, vocabulary: int, stats: NDArray[np.int64]) -> Scratch:
    entries = len(body.leaf)
    return Scratch(
        stamp=np.zeros(vocabulary, np.int32),
        seen=np.zeros(entries, np.uint16),
        met=np.empty(entries, np.int32),
        stack=np.empty((body.levels + 1) * (MOST + 1), np.int32),
        want=np.empty(((body.levels + 1) * (MOST + 1), 2), np.int32),
        wanted=np.empty(body.levels * entries + 1, np.int32),
        asked=np.zeros(vocabulary, np.int32),
        visit=np.zeros(1, np.int64),
        stats=stats,
    )


@kernel
def match_messages(
    body: Body,
    tokens: Tokens,
    entries: Entries,
    policy: int,
    box_first: bool,
    df: NDArray[np.int64],
    box: NDArray[np.float64],
    word_start: NDArray[np.int64],
    word: NDArray[np.int32],
    first: int,
    scratch: Scratch,
    out_event: NDArray[np.int32],
    out_name: NDArray[np.int32],
) -> tuple[int, int]:
    """Match the messages from `first` on until `out` is full: (the message to go on with, matches written)."""
    found = 0
    known = np.empty(len(word) + 1, np.int32)
    for event in range(first, len(box)):
        has = _stamp_message(word[word_start[event] : word_start[event + 1]], df, event + 1, scratch.stamp, known)
        scratch.stats[MESSAGES] += 1
        if policy == RT_PLUS_PLUS:
            end = rt_plus_plus_prune(body, tokens, entries, box[event], known[:has], event + 1, box_first, scratch, out_name, found)
        else:
            end = rt_tree_filter(body, tokens, entries, box[event], known[:has], event + 1, scratch, out_name, found)
        if end == FULL_OUT:
            return event, found
        out_event[found:end] = event
        found = end
    return len(box), found


@borrowing_kernel
def _stamp_message(
    words: NDArray[np.int32], df: NDArray[np.int64], number: int, stamp: NDArray[np.int32], known: NDArray[np.int32]
) -> int:
    """Stamp the tokens of a message that some entry has and list them in `known`; returns how many."""
    has = 0
    if len(df) > ALWAYS and df[ALWAYS] > 0:
        known[0], stamp[ALWAYS], has = ALWAYS, number, 1
    for code in words:
        token = code + 1
        if token < len(df) and df[token] > 0:
            known[has] = token
            stamp[token] = number
            has += 1
    return has


@borrowing_kernel
def rt_tree_filter(
    body: Body,
    tokens: Tokens,
    entries: Entries,
    box: NDArray[np.float64],
    words: NDArray[np.int32],
    number: int,
    scratch: Scratch,
    out: NDArray[np.int32],
    found: int,
) -> int:
    """Find the leaves that pass the box and the token filter, and verify their entries. [rttree, Alg. 1]"""
    stack = scratch.stack
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        if body.height[node] == 0:
            found = rt_tree_verify(body, entries, node, box, number, scratch, out, found)
            if found == FULL_OUT:
                return FULL_OUT
            continue
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if touch(body.box[child], box):
                scratch.stats[VISITED] += 1
                if has_any(tokens, child, words):
                    stack[depth] = child
                    depth += 1
    return found


@borrowing_kernel
def rt_tree_verify(
    body: Body,
    entries: Entries,
    leaf: int,
    box: NDArray[np.float64],
    number: int,
    scratch: Scratch,
    out: NDArray[np.int32],
    found: int,
) -> int:
    """The leaf's entries that touch the message and whose words it all has. [rttree, Alg. 1, Verify]"""
    for at in range(body.degree[leaf]):
        entry = body.child[leaf, at]
        if not touch(body.entry_box[entry], box):
            continue
        scratch.stats[VERIFIED] += 1
        start = entries.word_start[entry]
        holds = True
        for token in entries.token[start : start + entries.word_count[entry]]:
            if scratch.stamp[token] != number:
                holds = False
                break
        if holds:
            if found == len(out):
                return FULL_OUT
            out[found] = entries.name[entry]
            found += 1
    return found


@kernel
def rt_plus_plus_prune(
    body: Body,
    tokens: Tokens,
    entries: Entries,
    box: NDArray[np.float64],
    words: NDArray[np.int32],
    number: int,
    box_first: bool,
    scratch: Scratch,
    out: NDArray[np.int32],
    found: int,
) -> int:
    """Walk down the inverted lists, counting each entry's tokens; one whose count is full is an answer. [rttree, Alg. 2 (Fig. 6)]

    With `box_first` an entry's own box is tested when it is met first, and one that does not touch the message opens no path.
    Below level 1 only the tokens that counted entries have next are looked up.
    """
    met = np.zeros(1, np.int64)
    stack, want = scratch.stack, scratch.want
    stack[0], want[0, 0], want[0, 1], depth = body.state[ROOT], 0, 0, 1
    while depth > 0 and found != FULL_OUT:
        depth -= 1
        node, end = wide(stack[depth]), wide(want[depth, 1])
        wanted = words if node == body.state[ROOT] else scratch.wanted[want[depth, 0] : end]
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if not touch(body.box[child], box):
                continue
            if body.height[child] == 0:
                found = _read_leaf(body, entries, child, box, number, box_first, scratch, out, found)
                last = end
            else:
                found, last = _count_lists(
                    body, tokens, entries, child, box, wanted, number, box_first, scratch, met, end, out, found
                )
            if found == FULL_OUT:
                break
            if last > end:
                stack[depth], want[depth, 0], want[depth, 1] = child, end, last
                depth, end = depth + 1, last
    for entry in scratch.met[: met[0]]:
        scratch.seen[entry] = 0
    return found


@borrowing_kernel
def _read_leaf(
    body: Body,
    entries: Entries,
    leaf: int,
    box: NDArray[np.float64],
    number: int,
    box_first: bool,
    scratch: Scratch,
    out: NDArray[np.int32],
    found: int,
) -> int:
    """What the lists of a leaf would give, by its few entries: those counted at all levels above, whose other tokens are there."""
    above = body.height[body.state[ROOT]] - 1
    scratch.stats[VISITED] += 1
    for at in range(body.degree[leaf]):
        entry = body.child[leaf, at]
        start, count = entries.word_start[entry], entries.word_count[entry]
        if scratch.seen[entry] < above or count <= above:
            continue
        has = above
        while has < count and scratch.stamp[entries.token[start + has]] == number:
            has += 1
        if has == count and ((box_first and above > 0) or touch(body.entry_box[entry], box)):
            if found == len(out):
                return FULL_OUT
            out[found] = entries.name[entry]
            found += 1
    return found


@borrowing_kernel
def _count_lists(
    body: Body,
    tokens: Tokens,
    entries: Entries,
    node: int,
    box: NDArray[np.float64],
    words: NDArray[np.int32],
    number: int,
    box_first: bool,
    scratch: Scratch,
    met: NDArray[np.int64],
    end: int,
    out: NDArray[np.int32],
    found: int,
) -> tuple[int, int]:
    """Count the lists of a node that is no leaf: (matches so far, the end of the tokens wanted below it, which begin at `end`)."""
    level = body.height[body.state[ROOT]] - body.height[node]
    seen = scratch.seen
    scratch.stats[VISITED] += 1
    scratch.visit[0] += 1
    for token in words:
        slot = find(tokens, key_of(node, token))
        if slot < 0:
            continue
        start, length = wide(tokens.start[slot]), tokens.held[slot]
        scratch.stats[POSTINGS] += length
        for entry in tokens.posting[start : start + length]:
            if seen[entry] != level - 1 or (box_first and level == 1 and not touch(body.entry_box[entry], box)):
                continue
            if level == 1:
                scratch.met[met[0]] = entry
                met[0] += 1
            seen[entry] = level
            if level < entries.word_count[entry]:
                wanted = entries.token[entries.word_start[entry] + level]
                if scratch.stamp[wanted] == number and scratch.asked[wanted] != scratch.visit[0]:
                    scratch.asked[wanted] = scratch.visit[0]
                    scratch.wanted[end] = wanted
                    end += 1
            elif box_first or touch(body.entry_box[entry], box):
                if found == len(out):
                    return FULL_OUT, end
                out[found] = entries.name[entry]
                found += 1
    return found, end
