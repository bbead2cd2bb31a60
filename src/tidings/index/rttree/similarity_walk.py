"""The walks of `similarity`, as kernels. The arrays are told there, the scratch in `scratch`.

`out` works as in `filtering`: a walk writes from `found` on and returns how many matches there then are, or FULL_OUT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.packed.record import Events
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Bool, Float64, Int32, Int64
from tidings.index.rttree.body import ROOT, Body, touch
from tidings.index.rttree.filtering import FULL_OUT, LONG, MESSAGES, POSTINGS, VERIFIED, VISITED, WORDS_A_LEAF, touched_leaves
from tidings.index.rttree.policy import RT, RT_PLUS, RT_PLUS_PLUS
from tidings.index.rttree.scratch import MESSAGE, Scratch, on, put_on, take_off
from tidings.index.rttree.tokens import KEYS, Tokens, find, has_any, key_of
from tidings.rank.similarity import (
    FREE,
    SLACK,
    least_textual,
    node_bound,
    prefix_length,
    shared_weight,
    similarity,
    spatial_part,
    textual_part,
)


class Similar(NamedTuple):
    number: Int32
    alpha: Float64
    theta: Float64
    weight: Float64
    near: Int32
    apart: Int32
    word_start: Int64
    """These by entry."""
    word: Int32
    token: Int32
    share_from: Float64
    """These by word of an entry."""
    least_area: Float64
    least_weight: Float64
    least_theta: Float64
    least_alpha: Float64
    most_alpha: Float64
    late_near: Bool
    late_apart: Bool
    """These by node."""
    always: Int32
    apart_start: Int64
    apart_entry: Int32
    idf: Float64
    """The weight of each word, fixed when the index is built."""


class SimilarTree(NamedTuple):
    policy: int
    body: Body
    tokens: Tokens
    apart: Tokens
    """The tokens of PRE', of R^t+ alone."""
    similar: Similar
    stats: Int64


class Message(NamedTuple):
    """One message, and what its walk writes on."""

    box: Float64
    words: Int32
    """Those that the idf knows."""
    number: int
    scratch: Scratch
    """`met` takes the candidates: entries that the walk could not rule out, each once."""
    stats: Int64


@kernel
def prefixes(alpha: Float64, theta: Float64, start: Int64, share_from: Float64) -> tuple[Int32, Int32]:
    """The lengths of PRE and PRE' of each entry. [rttree, section 6.2]"""
    near, apart = np.empty(len(alpha), np.int32), np.empty(len(alpha), np.int32)
    for i in range(len(alpha)):
        share = share_from[start[i] : start[i + 1]]
        near[i] = prefix_length(share, least_textual(alpha[i], theta[i], 1.0))
        apart[i] = prefix_length(share, least_textual(alpha[i], theta[i], 0.0))
    return near, apart


@kernel
def bound_nodes(policy: int, body: Body, similar: Similar) -> None:
    """Give each node the bounds over what is below it; children have smaller numbers than their parents."""
    levels = body.height[body.state[ROOT]]
    for node in range(body.state[ROOT] + 1):
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if body.height[node] > 0:
                area, weight, theta = similar.least_area[child], similar.least_weight[child], similar.least_theta[child]
                _bound(similar, node, area, weight, theta, similar.least_alpha[child], similar.most_alpha[child])
            else:
                box = body.entry_box[child]
                area = (box[2] - box[0]) * (box[3] - box[1])
                alpha = similar.alpha[child]
                _bound(similar, node, area if area < np.inf else 0.0, similar.weight[child], similar.theta[child], alpha, alpha)
    if policy == RT:
        return
    for entry in range(len(similar.number)):
        near, apart = similar.near[entry], similar.apart[entry]
        node = wide(body.leaf[entry])
        while node >= 0:
            if policy == RT_PLUS:
                similar.late_near[node] |= near == FREE
                similar.late_apart[node] |= apart == FREE
            else:
                by_place = near == FREE and apart != FREE
                similar.late_near[node] |= by_place or near - max(apart, 0) > levels - body.height[node]
            node = wide(body.parent[node])


@kernel
def _bound(similar: Similar, node: int, area: float, weight: float, theta: float, least_alpha: float, most_alpha: float) -> None:
    similar.least_area[node] = min(similar.least_area[node], area)
    similar.least_weight[node] = min(similar.least_weight[node], weight)
    similar.least_theta[node] = min(similar.least_theta[node], theta)
    similar.least_alpha[node] = min(similar.least_alpha[node], least_alpha)
    similar.most_alpha[node] = max(similar.most_alpha[node], most_alpha)


@kernel
def match_similar(
    tree: SimilarTree, events: Events, first: int, scratch: Scratch, out_event: Int32, out: Int32, out_score: Float64
) -> tuple[int, int]:
    """Match the messages from `first` on until `out` is full: (the message to go on with, matches written)."""
    body, tokens, similar, stats = tree.body, tree.tokens, tree.similar, tree.stats
    found = 0
    known = np.empty(len(events.word), np.int32)
    for event in range(first, len(events.box)):
        scratch.number[MESSAGE] += 1
        number, has = scratch.number[MESSAGE], 0
        for code in events.word[events.word_start[event] : events.word_start[event + 1]]:
            if code < len(similar.idf):
                put_on(scratch, code, number)
                known[has] = code
                has += 1
        message = Message(events.box[event], known[:has], number, scratch, stats)
        if tree.policy == RT_PLUS_PLUS:
            candidates = walk_lists(body, tokens, similar, message)
        else:
            candidates = walk_leaves(tree.policy, body, tokens, tree.apart, similar, message)
        stats[MESSAGES] += 1
        stats[VERIFIED] += candidates
        end = score(body, similar, message, candidates, found, out, out_score)
        take_off(scratch, message.words)
        if end == FULL_OUT:
            return event, found
        out_event[found:end] = event
        found = end
    return len(events.box), found


@borrowing_kernel
def score(body: Body, similar: Similar, message: Message, candidates: int, found: int, out: Int32, out_score: Float64) -> int:
    """Score the candidates exactly and write down those that reach their theta; `out` is told in `filtering`."""
    stamp, number = message.scratch.stamp, message.number
    for entry in message.scratch.met[:candidates]:
        first, last = similar.word_start[entry], similar.word_start[entry + 1]
        shared = shared_weight(similar.word, first, last, similar.idf, stamp, number)
        spatial = spatial_part(body.entry_box, entry, message.box)
        value = similarity(similar.alpha[entry], spatial, textual_part(shared, similar.weight[entry]))
        if value >= similar.theta[entry]:
            if found == len(out):
                return FULL_OUT
            out[found] = similar.number[entry]
            out_score[found] = value
            found += 1
    return found


@borrowing_kernel
def walk_leaves(policy: int, body: Body, tokens: Tokens, apart_tokens: Tokens, similar: Similar, message: Message) -> int:
    """R^t and R^t+: the entries of every leaf that cannot be pruned are candidates. [rttree, sections 6.1 and 6.2]"""
    candidates, stack = 0, message.scratch.stack
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if body.height[node] == 0:
                message.scratch.met[candidates] = child
                candidates += 1
                continue
            message.stats[VISITED] += 1
            if policy == RT:
                hope = may_reach(body, tokens, similar, message, child)
            elif touch(body.box[child], message.box):
                hope = similar.late_near[child] or shares_prefix(body, tokens, similar, message, child, similar.near)
            else:
                hope = similar.late_apart[child] or shares_prefix(body, apart_tokens, similar, message, child, similar.apart)
            if hope:
                stack[depth] = child
                depth += 1
    return candidates


@borrowing_kernel
def may_reach(body: Body, tokens: Tokens, similar: Similar, message: Message, node: int) -> bool:
    """Whether something below the node may reach its theta. [rttree, Eq. 4]"""
    box, spatial = message.box, 0.0
    if touch(body.box[node], box):
        spatial, area = 1.0, similar.least_area[node]
        if area > 0.0 and (box[0] < box[2] or box[1] < box[3]):
            width = min(body.box[node, 2], box[2]) - max(body.box[node, 0], box[0])
            spatial = min(1.0, width * (min(body.box[node, 3], box[3]) - max(body.box[node, 1], box[1])) / area)
    least, most = similar.least_alpha[node], similar.most_alpha[node]
    enough, weight, shared = similar.least_theta[node] - SLACK, similar.least_weight[node], 0.0
    if node_bound(least, most, spatial, 1.0) < enough:
        return False
    reached: bool = weight == 0.0 or node_bound(least, most, spatial, 0.0) >= enough
    for token in message.words:
        if reached:
            break
        slot = find(tokens, key_of(node, token))
        if slot >= 0 and tokens.held[slot] > 0:
            shared += similar.idf[token]
            reached = node_bound(least, most, spatial, min(1.0, shared / weight)) >= enough
    return reached


@borrowing_kernel
def shares_prefix(body: Body, tokens: Tokens, similar: Similar, message: Message, node: int, length: Int32) -> bool:
    """Whether the message has a token of the prefixes (so long) below the node; asked as in `filtering`."""
    if body.height[node] > 0:
        return len(message.words) >= LONG or has_any(tokens, node, message.words)
    for at in range(body.degree[node]):
        entry = body.child[node, at]
        start = similar.word_start[entry]
        for token in similar.token[start : start + max(length[entry], 0)]:
            if on(message.scratch, token, message.number):
                return True
    return False


@kernel
def walk_lists(body: Body, tokens: Tokens, similar: Similar, message: Message) -> int:
    """R^t++: an entry is a candidate where its first shared token is met. [rttree, section 6.3]"""
    candidates, stack, leaves = len(similar.always), message.scratch.stack, message.scratch.leaves
    message.scratch.met[:candidates] = similar.always
    candidates = read_root(body, similar, message, candidates)
    few = min(len(message.words) // WORDS_A_LEAF, len(leaves)) if len(message.words) >= LONG else 0
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        above = body.height[body.state[ROOT]] - body.height[node]
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if not touch(body.box[child], message.box):
                continue
            if body.height[child] == 0:
                candidates = read_leaf(body, similar, message, child, above, candidates)
                continue
            gathered = touched_leaves(body, message.box, child, few, message.scratch, depth)
            for leaf in leaves[: max(gathered, 0)]:
                candidates = read_leaf(body, similar, message, wide(leaf), above, candidates)
            if gathered < 0:
                candidates = read_lists(body, tokens, similar, message, child, candidates)
                if similar.late_near[child]:
                    stack[depth] = child
                    depth += 1
    return candidates


@borrowing_kernel
def read_root(body: Body, similar: Similar, message: Message, candidates: int) -> int:
    """Add the entries that may match by PRE' wherever they are, if their first shared token is in it."""
    for token in message.words:
        first, last = similar.apart_start[token], similar.apart_start[token + 1]
        message.stats[POSTINGS] += last - first
        for entry in similar.apart_entry[first:last]:
            textual = textual_bound(similar, message, entry, token)
            alpha, enough = similar.alpha[entry], similar.theta[entry] - SLACK
            if similar.near[entry] == FREE:
                # Whoever touches the message is met in its leaf.
                add = similarity(alpha, 0.0, textual) >= enough and not touch(body.entry_box[entry], message.box)
            else:
                add = similarity(alpha, 1.0, textual) >= enough and (
                    similarity(alpha, spatial_part(body.entry_box, entry, message.box), textual) >= enough
                )
            if add:
                message.scratch.met[candidates] = entry
                candidates += 1
    return candidates


@borrowing_kernel
def textual_bound(similar: Similar, message: Message, entry: int, token: int) -> float:
    """What the entry's textual part comes to, but for rounding; -inf unless `token` is the first that it shares. [rttree, Eq. 7]"""
    scratch, number = message.scratch, message.number
    at, last = similar.word_start[entry], similar.word_start[entry + 1]
    while not on(scratch, similar.token[at], number):
        at += 1
    if similar.token[at] != token:
        return -np.inf
    textual: float = similar.share_from[at]
    for other in range(at + 1, last):
        if not on(scratch, similar.token[other], number):
            textual -= similar.share_from[other] - (similar.share_from[other + 1] if other + 1 < last else 0.0)
    return textual


@borrowing_kernel
def read_lists(body: Body, tokens: Tokens, similar: Similar, message: Message, node: int, candidates: int) -> int:
    """Add the entries whose first shared token stands at the node and whose bound (equation 7) reaches theta."""
    if tokens.state[KEYS] == 0:
        return candidates
    message.stats[VISITED] += 1
    for token in message.words:
        slot = find(tokens, key_of(node, token))
        if slot < 0:
            continue
        start, length = wide(tokens.start[slot]), tokens.held[slot]
        message.stats[POSTINGS] += length
        for entry in tokens.posting[start : start + length]:
            spatial = spatial_part(body.entry_box, entry, message.box)
            if (
                similarity(similar.alpha[entry], spatial, textual_bound(similar, message, entry, token))
                >= similar.theta[entry] - SLACK
            ):
                message.scratch.met[candidates] = entry
                candidates += 1
    return candidates


@borrowing_kernel
def read_leaf(body: Body, similar: Similar, message: Message, leaf: int, above: int, candidates: int) -> int:
    """Add the entries of a leaf that touch the message and match by place alone or are met here first.

    First: by none of PRE', and by none of the `above` tokens after it, which stand in the nodes whose lists were read. It does
    what `read_lists` does by reading the few entries themselves.
    """
    scratch, number = message.scratch, message.number
    message.stats[VISITED] += 1
    for at in range(body.degree[leaf]):
        entry = body.child[leaf, at]
        if not touch(body.entry_box[entry], message.box):
            continue
        near, apart = similar.near[entry], similar.apart[entry]
        if near == FREE:
            add = apart != FREE
        else:
            met, start = 0, similar.word_start[entry]
            while met < near and not on(scratch, similar.token[start + met], number):
                met += 1
            add = apart + above <= met < near
        if add:
            message.scratch.met[candidates] = entry
            candidates += 1
    return candidates
