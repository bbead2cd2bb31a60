"""The filtering algorithms of the R^t trees, as kernels: who hears of a message?

All share one walk: from the root down, into children whose box touches the message's and whose tokens give hope. A message comes
as its tokens (those that some entry has, and ALWAYS) and as a stamp on each token of the vocabulary that it has, so that asking
"does the message have this word?" is a read or two (`scratch`). So a token set and a message meet from the smaller side:
the message's words are looked up at the node, or the entries of a leaf are asked for the words they bring.

`stats` (4, int64) adds up the paper's counters: VISITED nodes whose tokens were looked at, POSTINGS read, VERIFIED entries whose
words were compared one by one, MESSAGES.

A kernel writes its matches into `out` from `found` on and returns how many `out` then holds; -1 if it did not have the space, and
then everything it wrote is to be forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.compiling.pinned import Pinned, opened
from tidings.index.packed.record import Events
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.rttree.body import ROOT, Body, touch
from tidings.index.rttree.policy import ALWAYS, RT, RT_PLUS_PLUS, Entries
from tidings.index.rttree.scratch import LAST_NUMBER, MESSAGE, VISIT, Scratch, hinted, on, put_on, take_off
from tidings.index.rttree.tokens import Tokens, find, has_any, key_of

VISITED, POSTINGS, VERIFIED, MESSAGES = 0, 1, 2, 3
FULL_OUT = -1
"""In place of how many matches `out` holds."""
FIRST_ROOM = 1 << 16
"""Matches that a call has space for at first; it doubles when they do not fit."""
WORDS_A_LEAF, POSTINGS_A_WORD, LONG = 4, 8, 50
"""Reading a leaf's entries costs about as much as looking up so many words, and looking up a word as much as so many entries that
have a word of the message (of which only those are read that it represents). Weighed for messages of LONG or more."""


class Tree(NamedTuple):
    body: Body
    tokens: Tokens
    entries: Entries
    policy: int
    box_first: bool
    df: Int64
    """Token: entries that have it."""
    stats: Int64


class Reading(NamedTuple):
    """A `Tree` that never changes, and what one call writes on: what a single message's call is given as one address."""

    body: Body
    tokens: Tokens
    entries: Entries
    policy: int
    box_first: int
    df: Int64
    stats: Int64
    scratch: Scratch
    out_event: Int32
    out_name: Int32


class Message(NamedTuple):
    box: Float64
    words: Int32
    """Its tokens that some entry has."""
    number: int
    """What they are stamped with."""


@kernel
def match_messages(
    tree: Tree, events: Events, first: int, last: int, scratch: Scratch, out_event: Int32, out_name: Int32
) -> tuple[int, int]:
    """Match the messages [first, last) until `out` is full: (the message to go on with, matches written)."""
    found = 0
    known = np.empty(events.word_start[last] - events.word_start[first] + 1, np.int32)
    for event in range(first, last):
        scratch.number[MESSAGE] += 1
        number = scratch.number[MESSAGE]
        word = events.word[events.word_start[event] : events.word_start[event + 1]]
        has = _stamp_message(word, tree.df, number, scratch, known)
        tree.stats[MESSAGES] += 1
        message = Message(events.box[event], known[:has], number)
        if tree.policy == RT_PLUS_PLUS:
            end = rt_plus_plus_prune(tree, message, scratch, out_name, found)
        else:
            end = rt_tree_filter(tree, message, scratch, out_name, found)
        take_off(scratch, message.words)
        if end == FULL_OUT:
            return event, found
        out_event[found:end] = event
        found = end
    return last, found


@kernel
def match_message(reading: Pinned[Reading], asked: Pinned[Events], event: int) -> int:
    """Match one message into `out_name`: how many match, FULL_OUT if there was not the space."""
    body, tokens, entries, policy, box_first, df, stats, scratch, out_event, out_name = opened(reading)
    if max(scratch.number[MESSAGE], scratch.number[VISIT]) >= LAST_NUMBER:
        scratch.stamp[:], scratch.asked[:], scratch.number[:] = 0, 0, 0
    tree = Tree(body, tokens, entries, policy, box_first != 0, df, stats)
    done, found = match_messages(tree, opened(asked), event, event + 1, scratch, out_event, out_name)
    return found if done > event else FULL_OUT


@borrowing_kernel
def _stamp_message(words: Int32, df: Int64, number: int, scratch: Scratch, known: Int32) -> int:
    """Stamp the tokens of a message that some entry has and list them in `known`; returns how many."""
    has = 0
    if len(df) > ALWAYS and df[ALWAYS] > 0:
        put_on(scratch, ALWAYS, number)
        known[0], has = ALWAYS, 1
    for code in words:
        token = code + 1
        if token < len(df) and df[token] > 0:
            put_on(scratch, token, number)
            known[has] = token
            has += 1
    return has


@borrowing_kernel
def rt_tree_filter(tree: Tree, message: Message, scratch: Scratch, out: Int32, found: int) -> int:
    """Find the leaves that pass the box and the token filter, and verify their entries. [rttree, Alg. 1]"""
    body, stack = tree.body, scratch.stack
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        if body.height[node] == 0:
            found = rt_tree_verify(tree, message, scratch, node, out, found)
            if found == FULL_OUT:
                return FULL_OUT
            continue
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if touch(body.box[child], message.box):
                tree.stats[VISITED] += 1
                if _shares_token(tree, message, scratch, child):
                    stack[depth] = child
                    depth += 1
    return found


@borrowing_kernel
def _shares_token(tree: Tree, message: Message, scratch: Scratch, node: int) -> bool:
    """Whether the node's tokens and the message's meet. [rttree, MBRTokenFilter]

    A leaf is asked by its few entries. Of a long message an inner node nearly always has a word, and is not asked.
    """
    body, entries = tree.body, tree.entries
    if body.height[node] > 0:
        return len(message.words) >= LONG or has_any(tree.tokens, node, message.words)
    for at in range(body.degree[node]):
        entry = body.child[node, at]
        start = entries.word_start[entry]
        count = entries.word_count[entry] if tree.policy == RT else 1
        for token in entries.token[start : start + count]:
            if on(scratch, token, message.number):
                return True
    return False


@borrowing_kernel
def rt_tree_verify(tree: Tree, message: Message, scratch: Scratch, leaf: int, out: Int32, found: int) -> int:
    """The leaf's entries that touch the message and whose words it all has. [rttree, Alg. 1, Verify]"""
    body, entries = tree.body, tree.entries
    for at in range(body.degree[leaf]):
        entry = body.child[leaf, at]
        if not touch(body.entry_box[entry], message.box):
            continue
        tree.stats[VERIFIED] += 1
        start = entries.word_start[entry]
        if has_all(entries.token[start : start + entries.word_count[entry]], message, scratch):
            if found == len(out):
                return FULL_OUT
            out[found] = entries.name[entry]
            found += 1
    return found


@borrowing_kernel
def has_all(tokens: Int32, message: Message, scratch: Scratch) -> bool:
    """Whether the message has them all."""
    for token in tokens:  # noqa: SIM110 - a generator does not compile
        if not on(scratch, token, message.number):
            return False
    return True


@kernel
def rt_plus_plus_prune(tree: Tree, message: Message, scratch: Scratch, out: Int32, found: int) -> int:
    """Walk down the inverted lists, counting each entry's tokens; one whose count is full is an answer. [rttree, Alg. 2 (Fig. 6)]

    With `box_first` an entry's own box is tested when it is met first, and one that does not touch the message opens no path.
    Below level 1 only the tokens that counted entries have next are looked up. A node of level 1 in which a long message touches
    few leaves for the words it has (WORDS_A_LEAF) is read by those leaves instead.
    """
    body, met = tree.body, np.zeros(1, np.int64)
    stack, want = scratch.stack, scratch.want
    stack[0], want[0, 0], want[0, 1], depth = body.state[ROOT], 0, 0, 1
    likely = _likely_postings(tree, message) if tree.box_first and len(message.words) >= LONG else -1.0
    while depth > 0 and found != FULL_OUT:
        depth -= 1
        node, end = wide(stack[depth]), wide(want[depth, 1])
        is_root = node == body.state[ROOT]
        wanted = message.words if is_root else scratch.wanted[want[depth, 0] : end]
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if not touch(body.box[child], message.box):
                continue
            last, leaves = end, NONE
            if body.height[child] == 0:
                found = _read_leaf(tree, message, scratch, child, out, found)
            else:
                if is_root and likely >= 0.0:
                    few = (len(message.words) + likely * body.size[child]) / WORDS_A_LEAF
                    leaves = touched_leaves(body, message.box, child, int(min(few, len(scratch.leaves))), scratch, depth)
                if leaves >= 0:
                    found = _read_leaves(tree, message, scratch, leaves, out, found)
                else:
                    found, last = _count_lists(tree, message, scratch, child, wanted, met, end, out, found)
            if found == FULL_OUT:
                break
            if last > end:
                stack[depth], want[depth, 0], want[depth, 1] = child, end, last
                depth, end = depth + 1, last
    for entry in scratch.met[: met[0]]:
        scratch.seen[entry] = 0
    return found


@borrowing_kernel
def _likely_postings(tree: Tree, message: Message) -> float:
    """What reading the lists of the message's words costs for each entry below a node, in lookups of a word."""
    entries = tree.df[message.words[0]]
    for token in message.words[1:]:
        entries += tree.df[token]
    likely: float = entries / (POSTINGS_A_WORD * tree.body.size[tree.body.state[ROOT]])
    return likely


@borrowing_kernel
def touched_leaves(body: Body, box: Float64, node: int, most: int, scratch: Scratch, depth: int) -> int:
    """Gather the leaves below the node that touch the box: how many, or NONE where there are more than `most`."""
    if most == 0:
        return NONE
    stack, found, bottom = scratch.stack, 0, depth
    stack[depth], depth = node, depth + 1
    while depth > bottom:
        depth -= 1
        node = wide(stack[depth])
        for at in range(body.degree[node]):
            child = body.child[node, at]
            if not touch(body.box[child], box):
                continue
            if body.height[child] > 0:
                stack[depth] = child
                depth += 1
            elif found == most:
                return NONE
            else:
                scratch.leaves[found] = child
                found += 1
    return found


@borrowing_kernel
def _read_leaves(tree: Tree, message: Message, scratch: Scratch, leaves: int, out: Int32, found: int) -> int:
    """The matches in leaves whose lists were not read: by the hint of the first word, the box, then all words."""
    body, entries = tree.body, tree.entries
    for leaf in scratch.leaves[:leaves]:
        tree.stats[VISITED] += 1
        for at in range(body.degree[leaf]):
            entry = body.child[leaf, at]
            start = entries.word_start[entry]
            if not hinted(scratch, entries.token[start]) or not touch(body.entry_box[entry], message.box):
                continue
            if has_all(entries.token[start : start + entries.word_count[entry]], message, scratch):
                if found == len(out):
                    return FULL_OUT
                out[found] = entries.name[entry]
                found += 1
    return found


@borrowing_kernel
def _read_leaf(tree: Tree, message: Message, scratch: Scratch, leaf: int, out: Int32, found: int) -> int:
    """What the lists of a leaf would give, by its few entries: those counted at all levels above, whose other tokens are there."""
    body, entries = tree.body, tree.entries
    above = body.height[body.state[ROOT]] - 1
    tree.stats[VISITED] += 1
    for at in range(body.degree[leaf]):
        entry = body.child[leaf, at]
        start, count = entries.word_start[entry], entries.word_count[entry]
        if scratch.seen[entry] < above or count <= above:
            continue
        has = above
        while has < count and on(scratch, entries.token[start + has], message.number):
            has += 1
        if has == count and ((tree.box_first and above > 0) or touch(body.entry_box[entry], message.box)):
            if found == len(out):
                return FULL_OUT
            out[found] = entries.name[entry]
            found += 1
    return found


@borrowing_kernel
def _count_lists(
    tree: Tree, message: Message, scratch: Scratch, node: int, words: Int32, met: Int64, end: int, out: Int32, found: int
) -> tuple[int, int]:
    """Count the lists of a node that is no leaf: (matches so far, the end of the tokens wanted below it, which begin at `end`)."""
    body, tokens, entries, box_first, seen = tree.body, tree.tokens, tree.entries, tree.box_first, scratch.seen
    level = body.height[body.state[ROOT]] - body.height[node]
    tree.stats[VISITED] += 1
    scratch.number[VISIT] += 1
    for token in words:
        slot = find(tokens, key_of(node, token))
        if slot < 0:
            continue
        start, length = wide(tokens.start[slot]), tokens.held[slot]
        tree.stats[POSTINGS] += length
        for entry in tokens.posting[start : start + length]:
            # Only who was counted at each level above is still in the race; whoever stands twice in it is counted once.
            if seen[entry] != level - 1 or (box_first and level == 1 and not touch(body.entry_box[entry], message.box)):
                continue
            if level == 1:
                scratch.met[met[0]] = entry
                met[0] += 1
            seen[entry] = level
            if level < entries.word_count[entry]:
                wanted = entries.token[entries.word_start[entry] + level]
                if on(scratch, wanted, message.number) and scratch.asked[wanted] != scratch.number[VISIT]:
                    scratch.asked[wanted] = scratch.number[VISIT]
                    scratch.wanted[end] = wanted
                    end += 1
            elif box_first or touch(body.entry_box[entry], message.box):
                if found == len(out):
                    return FULL_OUT, end
                out[found] = entries.name[entry]
                found += 1
    return found, end
