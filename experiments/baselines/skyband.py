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
    room = 4 * int(k * (1 + np.log(max(2.0, window / k)))) + 64
    shape = len(centres), room
    buffers = np.empty(shape), np.empty(shape, np.int64), np.zeros(shape, np.uint8), np.zeros((len(centres), 2), np.int64)
    heads = np.empty((len(centres), k + 1)), np.empty((len(centres), k + 1), np.int64), np.zeros(len(centres), np.int64)
    told = np.zeros(len(centres), np.int64)
    if not stream(points, centres, k, window, buffers, heads, told):
        raise RuntimeError("a k-skyband has outgrown its buffer: this stream is not of independent relevances")
    return told


@kernel
def stream(points, centres, k, window, buffers, heads, told):
    for event in range(len(points)):
        for s in range(len(centres)):
            total = 0.0
            for d in range(points.shape[1]):
                total += (points[event, d] - centres[s, d]) ** 2
            if not hear(event, total, s, k, window, buffers, heads, told):
                return False
    return True


@kernel
def hear(event, distance, s, k, window, buffers, heads, told):
    """One event reaches one subscription: leavers out of the head, the event into the buffer, the head filled up again."""
    far, when, flag, bounds = buffers
    head_far, head_when, head_size = heads
    oldest = NOBODY
    for i in range(head_size[s]):
        oldest = min(oldest, head_when[s, i])
    if oldest + window <= event:
        kept = 0
        for i in range(head_size[s]):
            if head_when[s, i] + window > event:
                head_far[s, kept], head_when[s, kept] = head_far[s, i], head_when[s, i]
                kept += 1
        head_size[s] = kept
    if bounds[s, 1] == far.shape[1] and not prune(event, s, k, window, buffers):
        return False
    at = bounds[s, 1]
    far[s, at], when[s, at], flag[s, at] = distance, event, 0
    bounds[s, 1] += 1
    if head_size[s] == k and distance < head_far[s, k - 1]:
        enter(at, s, k, buffers, heads, told)
    while head_size[s] < k:
        best = nearest_outside(event, s, window, buffers)
        if best < 0:
            break
        enter(best, s, k, buffers, heads, told)
    return True


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
def prune(event, s, k, window, buffers):
    """Keep, from the newest to the oldest, what fewer than k later ones are nearer than; False when too much stays."""
    far, when, flag, bounds = buffers
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
