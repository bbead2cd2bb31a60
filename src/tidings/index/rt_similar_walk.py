"""The walks of `rt_similarity`, as kernels. The arrays are told there.

`out` works as in `rt_filter`: a walk writes from `found` on and returns how many matches there then are, or FULL_OUT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings._jit import borrowing_kernel, kernel
from tidings.index.rt_body import MOST, ROOT, Body, touch, wide
from tidings.index.rt_filter import FULL_OUT, MESSAGES, POSTINGS, VERIFIED, VISITED
from tidings.index.rt_policy import RT, RT_PLUS, RT_PLUS_PLUS
from tidings.index.rt_tokens import Tokens, find, has_any, key_of
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
    number: NDArray[np.int32]
    alpha: NDArray[np.float64]
    theta: NDArray[np.float64]
    weight: NDArray[np.float64]
    near: NDArray[np.int32]
    apart: NDArray[np.int32]
    word_start: NDArray[np.int64]
    word: NDArray[np.int32]
    token: NDArray[np.int32]
    share_from: NDArray[np.float64]
    least_area: NDArray[np.float64]
    least_weight: NDArray[np.float64]
    least_theta: NDArray[np.float64]
    least_alpha: NDArray[np.float64]
    most_alpha: NDArray[np.float64]
    late_near: NDArray[np.bool_]
    late_apart: NDArray[np.bool_]
    always: NDArray[np.int32]
    idf: NDArray[np.float64]
    """The weight of each word, fixed when the index is built."""


class Message(NamedTuple):
    """One message, and what its walk writes on."""

    box: NDArray[np.float64]
    words: NDArray[np.int32]
    """Those that the idf knows."""
    number: int
    stamp: NDArray[np.int32]
    """Word: the number of the last message that had it."""
    candidate: NDArray[np.int32]
    """Entries that the walk could not rule out, each once; there is room for all."""
    stats: NDArray[np.int64]


@kernel
def prefixes(
    alpha: NDArray[np.float64], theta: NDArray[np.float64], start: NDArray[np.int64], share_from: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
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
                _bound(similar, node, similar.least_area[child], similar.least_weight[child], similar.least_theta[child],
                       similar.least_alpha[child], similar.most_alpha[child])  # fmt: skip
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
            level = levels - body.height[node] if policy == RT_PLUS_PLUS else len(similar.token)
            similar.late_near[node] |= near > level or (near == FREE and (apart != FREE or policy == RT_PLUS))
            similar.late_apart[node] |= apart > level or (apart == FREE and policy == RT_PLUS)
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
    policy: int,
    body: Body,
    tokens: Tokens,
    apart_tokens: Tokens,
    similar: Similar,
    box: NDArray[np.float64],
    word_start: NDArray[np.int64],
    word: NDArray[np.int32],
    first: int,
    stamp: NDArray[np.int32],
    candidate: NDArray[np.int32],
    stats: NDArray[np.int64],
    out_event: NDArray[np.int32],
    out: NDArray[np.int32],
    out_score: NDArray[np.float64],
) -> tuple[int, int]:
    """Match the messages from `first` on until `out` is full: (the message to go on with, matches written)."""
    found = 0
    known = np.empty(len(word), np.int32)
    for event in range(first, len(box)):
        has = 0
        for code in word[word_start[event] : word_start[event + 1]]:
            if code < len(stamp):
                stamp[code] = event + 1
                known[has] = code
                has += 1
        message = Message(box[event], known[:has], event + 1, stamp, candidate, stats)
        if policy == RT_PLUS_PLUS:
            candidates = walk_lists(body, tokens, similar, message)
        else:
            candidates = walk_leaves(policy, body, tokens, apart_tokens, similar, message)
        stats[MESSAGES] += 1
        stats[VERIFIED] += candidates
        end = score(body, similar, message, candidates, found, out, out_score)
        if end == FULL_OUT:
            return event, found
        out_event[found:end] = event
        found = end
    return len(box), found


@borrowing_kernel
def score(
    body: Body,
    similar: Similar,
    message: Message,
    candidates: int,
    found: int,
    out: NDArray[np.int32],
    out_score: NDArray[np.float64],
) -> int:
    """Score the candidates exactly and write down those that reach their theta; `out` is told in `rt_filter`."""
    for at in range(candidates):
        entry = message.candidate[at]
        first, last = similar.word_start[entry], similar.word_start[entry + 1]
        shared = shared_weight(similar.word, first, last, similar.idf, message.stamp, message.number)
        spatial = spatial_part(body.entry_box, entry, message.box)
        value = similarity(similar.alpha[entry], spatial, textual_part(shared, similar.weight[entry]))
        if value >= similar.theta[entry]:
            if found == len(out):
                return FULL_OUT
            out[found] = similar.number[entry]
            out_score[found] = value
            found += 1
    return found


@kernel
def walk_leaves(policy: int, body: Body, tokens: Tokens, apart_tokens: Tokens, similar: Similar, message: Message) -> int:
    """R^t and R^t+: the entries of every leaf that cannot be pruned are candidates. [rttree, sections 6.1 and 6.2]"""
    candidates = 0
    stack = np.empty((body.height[body.state[ROOT]] + 1) * (MOST + 1), np.int32)
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            if body.height[node] == 0:
                message.candidate[candidates] = child
                candidates += 1
                continue
            message.stats[VISITED] += 1
            if policy == RT:
                hope = may_reach(body, tokens, similar, message, child)
            elif touch(body.box[child], message.box):
                hope = similar.late_near[child] or has_any(tokens, child, message.words)
            else:
                hope = similar.late_apart[child] or has_any(apart_tokens, child, message.words)
            if hope:
                stack[depth] = child
                depth += 1
    return candidates


@borrowing_kernel
def may_reach(body: Body, tokens: Tokens, similar: Similar, message: Message, node: int) -> bool:
    """Whether something below the node may reach its theta. [rttree, Eq. 4]"""
    box, spatial, textual = message.box, 0.0, 1.0
    if touch(body.box[node], box):
        spatial, area = 1.0, similar.least_area[node]
        if area > 0.0 and (box[0] < box[2] or box[1] < box[3]):
            width = min(body.box[node, 2], box[2]) - max(body.box[node, 0], box[0])
            spatial = min(1.0, width * (min(body.box[node, 3], box[3]) - max(body.box[node, 1], box[1])) / area)
    if similar.least_weight[node] > 0.0:
        shared = 0.0
        for token in message.words:
            slot = find(tokens, key_of(node, token))
            if slot >= 0 and tokens.held[slot] > 0:
                shared += similar.idf[token]
        textual = min(1.0, shared / similar.least_weight[node])
    bound = node_bound(similar.least_alpha[node], similar.most_alpha[node], spatial, textual)
    reached: bool = bound >= similar.least_theta[node] - SLACK
    return reached


@kernel
def walk_lists(body: Body, tokens: Tokens, similar: Similar, message: Message) -> int:
    """R^t++: an entry is a candidate where its first shared token is met. [rttree, section 6.3]"""
    candidates = len(similar.always)
    message.candidate[:candidates] = similar.always
    stack = np.empty((body.height[body.state[ROOT]] + 1) * (MOST + 1), np.int32)
    stack[0], depth = body.state[ROOT], 1
    while depth > 0:
        depth -= 1
        node = wide(stack[depth])
        for at in range(body.degree[node]):
            child = wide(body.child[node, at])
            touching = touch(body.box[child], message.box)
            if not (touching or similar.late_apart[node]):
                continue
            if touching and body.height[child] == 0:
                candidates = read_leaf(body, similar, message, child, candidates)
            else:
                candidates = read_lists(body, tokens, similar, message, child, touching, candidates)
            if body.height[child] > 0 and (similar.late_apart[child] or (touching and similar.late_near[child])):
                stack[depth] = child
                depth += 1
    return candidates


@borrowing_kernel
def read_lists(body: Body, tokens: Tokens, similar: Similar, message: Message, node: int, touching: bool, candidates: int) -> int:
    """Add the entries whose first shared token stands at the node and whose bound (equation 7) reaches theta."""
    message.stats[VISITED] += 1
    for token in message.words:
        slot = find(tokens, key_of(node, token))
        if slot < 0:
            continue
        start, length = wide(tokens.start[slot]), tokens.held[slot]
        message.stats[POSTINGS] += length
        for entry in tokens.posting[start : start + length]:
            at = similar.word_start[entry]
            while message.stamp[similar.token[at]] != message.number:
                at += 1
            spatial = 0.0
            if touching:
                spatial = spatial_part(body.entry_box, entry, message.box)
            bound = similarity(similar.alpha[entry], spatial, similar.share_from[at])
            if similar.token[at] == token and bound >= similar.theta[entry] - SLACK:
                message.candidate[candidates] = entry
                candidates += 1
    return candidates


@borrowing_kernel
def read_leaf(body: Body, similar: Similar, message: Message, leaf: int, candidates: int) -> int:
    """Add the entries of a leaf that the message touches: those met here first, and those that may match by place alone.

    It does what `read_lists` does by reading the few entries themselves.
    """
    above = body.height[body.state[ROOT]] - 1
    message.stats[VISITED] += 1
    for at in range(body.degree[leaf]):
        entry = body.child[leaf, at]
        near, apart = similar.near[entry], similar.apart[entry]
        posted = max(near, apart)
        by_place = near == FREE and apart != FREE and touch(body.entry_box[entry], message.box)
        if not by_place and posted <= above:
            continue
        met, start = 0, similar.word_start[entry]
        while met < posted and message.stamp[similar.token[start + met]] != message.number:
            met += 1
        if by_place if met >= posted else met >= above:
            message.candidate[candidates] = entry
            candidates += 1
    return candidates
