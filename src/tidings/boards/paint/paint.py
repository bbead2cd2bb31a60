"""Paint: turn one update of an object into few messages, each a rectangle of watchers and what to tell them.

`PaintDense` knows only the objects. `PaintSparse` also knows the watchers and sends no message that nobody gets. Both are exact: an
affected watcher gets one message an update, another none. With `epsilon` they send at most 1 / epsilon messages for each
object told of, and watchers for whom an object ranks within (1 +- epsilon) k may hear of it in vain; the protocol
(`watch_lists`) ignores such news, so lists stay exact.

An update is one of: a new object (it was nowhere), a deletion (y = inf), a change of y, of x, or of both. The old place is the
index's. A painter reads the index with the object lifted out; several painters of different k may share one (`paint_each`).

Cost: O((k + e) k log n) for e exposed objects; Paint-Sparse adds at most 2k snaps an exposed object.

Paper: range-topk, sections III and IV-B, Alg. 3. See `tiles` for geometry, layout and deviations. A change of x is native:
the staircase at the new place is cut out of what the old place gives up, so that a watcher of both gets one message. With
`epsilon` nothing is cut out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.boards.paint.sparse import paint_sparse
from tidings.boards.paint.tiles import (
    NONE,
    Messages,
    Painting,
    Place,
    Scratch,
    coarsen,
    cut_out,
    emit,
    empty_messages,
    insert_neighbour,
    neighbours,
    paint_exposed,
    paint_ir,
    scratch,
    sinks,
    stair_at,
)
from tidings.index.points.object_arrays import ObjectArrays
from tidings.index.points.object_questions import below, min_y
from tidings.index.points.objects import ObjectIndex, delete_object, insert_object
from tidings.index.points.tree_arrays import QUESTIONS, frontier
from tidings.index.points.watchers import WatchIndex

NOBODY = WatchIndex()
"""The watchers of who knows none."""


class PaintDense:
    def __init__(self, objects: ObjectIndex, k: int, epsilon: float | None = None) -> None:
        self.objects, self.k, self.width = objects, k, strips_told_together(k, epsilon)
        self._scratch = scratch(k)

    def painting(self) -> Painting:
        return Painting(self.objects.arrays, NOBODY.arrays, NOBODY.arrays, self.k, self.width, sparse=False)

    def paint(self, number: int, old: Place, new: Place) -> Messages:
        """Messages of one move from `old` to `new` (x, y), y = inf for absent; the index does not hold the object."""
        out, count = paint_one(self.painting(), number, old, new, self._scratch, empty_messages(), 0)
        return out[:count]

    def update_many(
        self, numbers: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[Messages, NDArray[np.int64]]:
        """Apply updates one by one: all messages, and where each update's begin (one more entry than updates)."""
        self.objects.reserve(int(numbers.max(initial=-1)) + 1)
        return paint_updates(self.painting(), numbers, x, y, self._scratch, empty_messages())


class PaintSparse(PaintDense):
    """`watchers` may be a sketch; it must cover every watcher that the messages are for."""

    def __init__(self, objects: ObjectIndex, k: int, watchers: WatchIndex, epsilon: float | None = None) -> None:
        super().__init__(objects, k, epsilon)
        self.watchers = watchers
        self._tree, self._few = watchers.arrays, frontier(watchers.arrays)

    @property
    def snaps(self) -> int:
        """Questions asked of the watchers so far."""
        return int(self.watchers.arrays.meta[QUESTIONS] + self._few.meta[QUESTIONS])

    def painting(self) -> Painting:
        """With a new frontier when the watchers' tree has moved to wider arrays."""
        if self._tree is not self.watchers.arrays:
            self._tree, self._few = self.watchers.arrays, frontier(self.watchers.arrays)
        return Painting(self.objects.arrays, self._tree, self._few, self.k, self.width, sparse=True)


def strips_told_together(k: int, epsilon: float | None) -> int:
    assert k >= 1, f"k = {k}: painting needs k >= 1"
    assert epsilon is None or 0 < epsilon <= 1, f"epsilon = {epsilon}: needs 0 < epsilon <= 1"
    return 1 if epsilon is None else math.ceil(epsilon * k)


def paint_each(
    objects: ObjectIndex, painters: Sequence[PaintDense], number: int, x: float, y: float, tie: float | None = None
) -> list[Messages]:
    """One update of a shared index, painted for every k; y = inf deletes."""
    objects.reserve(number + 1)
    old = (x, math.inf)
    if number in objects:
        old = (float(objects.arrays.x[number]), float(objects.arrays.y[number]))
        objects.delete(number)
    else:
        objects.arrays.tie[number] = number if tie is None else tie
    new = (old[0] if y == math.inf else x, y)
    messages = [painter.paint(number, old, new) for painter in painters]
    if y < math.inf:
        insert_object(objects.arrays, number, x, y)
    return messages


@kernel
def paint_dense(p: Painting, number: int, old: Place, new: Place, s: Scratch, out: Messages, count: int) -> tuple[Messages, int]:
    """[range-topk, Alg. 3]"""
    objects, k, width = p.objects, p.k, p.width
    tie, stays = objects.tie[number], old[0] == new[0]
    if sinks(old, new):
        steps = 0 if stays or width > 1 else stair_at(objects, new, tie, k, s)
        wests, easts = neighbours(objects, old[0], old[1], tie, k, s.west, s.east)
        y, passed = old[1], tie
        while True:
            # Exposed is what lies strictly between the outermost neighbours, in order of rank, up to the object's new one.
            lo = -np.inf if wests < k else np.nextafter(s.west[k - 1], np.inf)
            hi = np.inf if easts < k else np.nextafter(s.east[k - 1], -np.inf)
            exposed = min_y(objects, lo, hi, y, passed)
            if exposed < 0 or not below(objects.y, objects.tie, exposed, new[1] if stays else np.inf, tie):
                break
            y, passed = objects.y[exposed], objects.tie[exposed]
            x = objects.x[exposed]
            tiles = coarsen(s.tile, s.strip, paint_exposed(s.west, wests, s.east, easts, old[0], x, k, s.tile, s.strip), width)
            if steps:
                tiles = cut_out(s.tile, tiles, s.stair[0], steps, new[0], s.piece)
            out, count = emit(out, count, s.piece if steps else s.tile, tiles, exposed, x, y, number, new)
            if x <= old[0]:
                _, wests = insert_neighbour(s.west, wests, k, x, -1)
            else:
                _, easts = insert_neighbour(s.east, easts, k, x, 1)
        tiles = coarsen(s.tile, s.strip, paint_ir(s.west, wests, s.east, easts, old[0], k, s.tile, s.strip), width)
        if steps:
            tiles = cut_out(s.tile, tiles, s.stair[0], steps, new[0], s.piece)
        out, count = emit(out, count, s.piece if steps else s.tile, tiles, number, new[0], new[1], NONE, new)
        if stays:
            return out, count
    if new[1] < np.inf:
        wests, easts = neighbours(objects, new[0], new[1], tie, k, s.west, s.east)
        tiles = coarsen(s.tile, s.strip, paint_ir(s.west, wests, s.east, easts, new[0], k, s.tile, s.strip), width)
        out, count = emit(out, count, s.tile, tiles, number, new[0], new[1], NONE, new)
    return out, count


@kernel
def paint_one(p: Painting, number: int, old: Place, new: Place, s: Scratch, out: Messages, count: int) -> tuple[Messages, int]:
    if p.sparse:
        return paint_sparse(p, number, old, new, s, out, count)
    return paint_dense(p, number, old, new, s, out, count)


@kernel
def lift(objects: ObjectArrays, number: int, x: float, y: float) -> tuple[Place, Place]:
    """Take the object out of the index; where it was and where it goes."""
    if objects.block_of[number] < 0:
        return (x, np.inf), (x, y)
    old = (objects.x[number], objects.y[number])
    delete_object(objects, number)
    return old, (old[0] if y == np.inf else x, y)


@kernel
def paint_updates(
    p: Painting, numbers: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64], s: Scratch, out: Messages
) -> tuple[Messages, NDArray[np.int64]]:
    start = np.zeros(len(numbers) + 1, np.int64)
    count = 0
    for i in range(len(numbers)):
        old, new = lift(p.objects, numbers[i], x[i], y[i])
        out, count = paint_one(p, numbers[i], old, new, s, out, count)
        if y[i] < np.inf:
            insert_object(p.objects, numbers[i], x[i], y[i])
        start[i + 1] = count
    return out[:count], start
