"""k-skyband buffers over a stream: the exact method of Boehm, Ooi, Plant and Yan (ICDE 2007), without its index and delaying.

Every subscription is looked at for every event. Its buffer holds, in order of arrival, the events that may still be among the
k nearest: those to which fewer than k later ones are nearer. It is pruned to that when it is full, which is at four times the
expected size for independent data. The k nearest are kept apart, sorted; when one of them leaves, the buffer is searched for the
next. Windows are counts of events, one event a step; at the end, how often each subscription was notified.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel

NOBODY = np.iinfo(np.int64).max
TOLD, IN_HEAD = 1, 2


def deliveries(points, centres, k, window):
    """How many of the points, an n x d stream, are delivered to each of the centres."""
    n = len(centres)
    shape = n, 4 * int(k * (1 + np.log(max(2.0, window / k)))) + 256
    buffers = np.empty(shape), np.empty(shape, np.int64), np.zeros(shape, np.uint8), np.zeros((n, 2), np.int64)
    heads = np.empty((n, k + 1)), np.empty((n, k + 1), np.int64), np.zeros(n, np.int64)
    limits = np.full(n, np.inf), np.full(n, NOBODY)
    told = np.zeros(n, np.int64)
    if not stream(points, centres, k, window, buffers, heads, limits, told):
        raise RuntimeError("a k-skyband has outgrown its buffer: this stream is not of independent relevances")
    return told


@kernel
def stream(points, centres, k, window, buffers, heads, limits, told):
    """`limits`: the distance of the k-th, and the arrival of the head's oldest. Most events only go to the end of a buffer."""
    far, when, flag, bounds = buffers
    last, oldest = limits
    room = far.shape[1]
    for event in range(len(points)):
        for s in range(len(centres)):
            total = 0.0
            for d in range(points.shape[1]):
                off = points[event, d] - centres[s, d]
                total += off * off
            at = bounds[s, 1]
            if at == room:
                if not prune(event, s, k, window, far, when, flag, bounds):
                    return False
                at = bounds[s, 1]
            far[s, at], when[s, at], flag[s, at] = total, event, 0
            bounds[s, 1] = at + 1
            if total < last[s] or oldest[s] + window <= event:
                hear(event, at, s, k, window, buffers, heads, limits, told)
    return True


@kernel
def hear(event, at, s, k, window, buffers, heads, limits, told):
    """The head changes: leavers out, the event in if it is near enough, and the head filled up from the buffer."""
    far = buffers[0]
    head_far, head_when, head_size = heads
    last, oldest = limits
    if oldest[s] + window <= event:
        kept = 0
        for i in range(head_size[s]):
            if head_when[s, i] + window > event:
                head_far[s, kept], head_when[s, kept] = head_far[s, i], head_when[s, i]
                kept += 1
        head_size[s] = kept
    if head_size[s] == k and far[s, at] < head_far[s, k - 1]:
        enter(at, s, k, buffers, heads, told)
    while head_size[s] < k:
        best = nearest_outside(event, s, window, buffers)
        if best < 0:
            break
        enter(best, s, k, buffers, heads, told)
    last[s] = head_far[s, k - 1] if head_size[s] == k else np.inf
    oldest[s] = NOBODY
    for i in range(head_size[s]):
        oldest[s] = min(oldest[s], head_when[s, i])


@kernel
def nearest_outside(event, s, window, buffers):
    """The nearest of the buffer that lives and is not in the head; -1 when there is none."""
    far, when, flag, bounds = buffers
    while bounds[s, 0] < bounds[s, 1] and when[s, bounds[s, 0]] + window <= event:
        bounds[s, 0] += 1
    best = -1
    for i in range(bounds[s, 0], bounds[s, 1]):
        if not flag[s, i] & IN_HEAD and (best < 0 or far[s, i] < far[s, best]):
            best = i
    return best


@kernel
def enter(at, s, k, buffers, heads, told):
    """Put the buffer's entry into the head; the last of a full head goes back to the buffer."""
    far, when, flag, bounds = buffers
    head_far, head_when, head_size = heads
    told[s] += not flag[s, at] & TOLD
    flag[s, at] |= TOLD | IN_HEAD
    i = head_size[s]
    while i > 0 and head_far[s, i - 1] > far[s, at]:
        head_far[s, i], head_when[s, i] = head_far[s, i - 1], head_when[s, i - 1]
        i -= 1
    head_far[s, i], head_when[s, i] = far[s, at], when[s, at]
    head_size[s] += 1
    if head_size[s] > k:
        head_size[s] = k
        fallen = bounds[s, 0] + np.searchsorted(when[s, bounds[s, 0] : bounds[s, 1]], head_when[s, k])
        flag[s, fallen] &= ~np.uint8(IN_HEAD)


@kernel
def prune(event, s, k, window, far, when, flag, bounds):
    """Keep, from the newest to the oldest, what fewer than k later ones are nearer than; False when too much stays."""
    nearest = np.full(k, np.inf)
    kept = far.shape[1]
    for i in range(far.shape[1] - 1, bounds[s, 0] - 1, -1):
        if when[s, i] + window <= event:
            break
        if far[s, i] < nearest[k - 1]:
            q = k - 1
            while q > 0 and nearest[q - 1] > far[s, i]:
                nearest[q] = nearest[q - 1]
                q -= 1
            nearest[q] = far[s, i]
            kept -= 1
            far[s, kept], when[s, kept], flag[s, kept] = far[s, i], when[s, i], flag[s, i]
    n = far.shape[1] - kept
    for i in range(n):
        far[s, i], when[s, i], flag[s, i] = far[s, kept + i], when[s, kept + i], flag[s, kept + i]
    bounds[s, 0], bounds[s, 1] = 0, n
    return n < far.shape[1]
