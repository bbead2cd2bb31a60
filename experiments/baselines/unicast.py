"""Unicast: the server works out every affected watcher and writes to each of them, one message of ID, object, x and y (16 bytes).

As in range-topk, section V: the candidates are the watchers in the box around the old and new influence region; each is tried in
turn, and the exposed object is sought by min_y from the object's old rank upwards.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel
from tidings.boards.paint.tiles import neighbours
from tidings.index.points.object_questions import min_y
from tidings.index.points.objects import delete_object, insert_object
from tidings.index.points.tree_questions import report

MESSAGE_BYTES = 16


@kernel
def in_lists(west, wests, east, easts, l, r):
    """How many of the neighbours lie in [l, r]."""
    count = 0
    while count < wests and west[count] >= l:
        count += 1
    inside = count
    count = 0
    while count < easts and east[count] <= r:
        count += 1
    return inside + count


@kernel
def unicast_updates(objects, watchers, points, k, numbers, x, y):
    """Apply changes of y one by one: (affected watchers, candidates tried) of each, and how often one was exposed."""
    affected, calls = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    west, east = np.empty(k + 1), np.empty(k + 1)
    box, exposed = np.empty((2, 2)), np.zeros(1, np.int64)
    for i in range(len(numbers)):
        number, old = numbers[i], objects.y[numbers[i]]
        tie = objects.tie[number]
        delete_object(objects, number)
        best = min(old, y[i])
        wests, easts = neighbours(objects, x[i], best, tie, k, west, east)
        box[0, 0], box[1, 0] = (-np.inf if wests < k else np.nextafter(west[k - 1], np.inf)), x[i]
        box[0, 1], box[1, 1] = x[i], (np.inf if easts < k else np.nextafter(east[k - 1], -np.inf))
        for watcher in report(watchers, box):
            calls[i] += 1  # the paper's server asks once for every candidate
            l, r = points[watcher, 0], points[watcher, 1]
            ahead = in_lists(west, wests, east, easts, l, r)
            if ahead >= k:
                continue
            affected[i] += 1
            if y[i] > old:
                exposed[0] += min_y(objects, l, r, old, tie) >= 0
        insert_object(objects, number, x[i], y[i])
    return affected, calls, exposed[0]
