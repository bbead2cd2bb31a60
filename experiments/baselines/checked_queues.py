"""The paper's own algorithm: for each event, every subscription is checked against the last of its publications queue.

A queue holds at most `length` events sorted by distance: the first k are the head, the rest the tail. An event that is nearer than
the last, or finds the queue not full, is put at its place; one that has left the window is taken out, and what then stands in
the head for the first time is delivered. Windows are counts of events. Sorted arrays stand in for the paper's linked lists.
[topkw, Sections 3 and 4]
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel

NOBODY = np.iinfo(np.int64).max


class CheckedQueues:
    """`told` counts what each of the centres was delivered of the points published so far."""

    def __init__(self, centres, k, length, window):
        shape, n = (len(centres), length + 1), len(centres)
        self.arguments = np.ascontiguousarray(centres.T), k, window
        self.queues = np.empty(shape), np.empty(shape, np.int64), np.zeros(shape, np.uint8), np.zeros(n, np.int64)
        self.last, self.oldest, self.told = np.full(n, np.inf), np.full(n, NOBODY), np.zeros(n, np.int64)
        self.published = 0

    def publish(self, points):
        """Publish an n x d stream."""
        stream(points, self.published, *self.arguments, self.queues, self.last, self.oldest, self.told)
        self.published += len(points)


def deliveries(points, centres, k, length, window):
    """How many of the points, an n x d stream, are delivered to each of the centres."""
    queues = CheckedQueues(centres, k, length, window)
    queues.publish(points)
    return queues.told


@kernel
def stream(points, first, centres, k, window, queues, last, oldest, told):
    n = centres.shape[1]
    totals, wanted = np.empty(n), np.zeros((n + 7) // 8 * 8, np.uint8)
    eights = wanted.view(np.uint64)
    for row in range(len(points)):
        event = first + row
        check_all(points[row], centres, last, oldest, event - window, totals, wanted)
        for eight in range(eights.size):
            if eights[eight]:
                for s in range(8 * eight, min(8 * eight + 8, n)):
                    if wanted[s]:
                        if oldest[s] + window <= event:
                            leave(event, s, window, queues, oldest)
                        arrive(event, totals[s], s, queues, last, oldest)
                        deliver(s, k, queues, told)


@kernel
def check_all(point, centres, last, oldest, gone, totals, wanted):
    """Squared distances to all centres, d x n, and who must look: plain loops over whole arrays, which vectorise."""
    totals[:] = 0.0
    for d in range(point.size):
        x, column = point[d], centres[d]
        for s in range(totals.size):
            off = column[s] - x
            totals[s] += off * off
    for s in range(totals.size):
        wanted[s] = (totals[s] < last[s]) | (oldest[s] <= gone)


@kernel
def leave(event, s, window, queues, oldest):
    far, when, heard, size = queues
    kept = 0
    oldest[s] = NOBODY
    for i in range(size[s]):
        if when[s, i] + window > event:
            far[s, kept], when[s, kept], heard[s, kept] = far[s, i], when[s, i], heard[s, i]
            oldest[s] = min(oldest[s], when[s, kept])
            kept += 1
    size[s] = kept


@kernel
def arrive(event, distance, s, queues, last, oldest):
    far, when, heard, size = queues
    longest = far.shape[1] - 1
    i = size[s]
    while i > 0 and far[s, i - 1] > distance:
        far[s, i], when[s, i], heard[s, i] = far[s, i - 1], when[s, i - 1], heard[s, i - 1]
        i -= 1
    far[s, i], when[s, i], heard[s, i] = distance, event, 0
    size[s] = min(size[s] + 1, longest)
    oldest[s] = min(oldest[s], event)
    last[s] = far[s, longest - 1] if size[s] == longest else np.inf


@kernel
def deliver(s, k, queues, told):
    heard, size = queues[2], queues[3]
    for i in range(min(k, size[s])):
        told[s] += not heard[s, i]
        heard[s, i] = 1
