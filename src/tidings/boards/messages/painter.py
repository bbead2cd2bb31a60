"""The painter of one family: what has become of objects in, messages out. It knows no watcher, at most a cover of them.

Many changes at once are painted by Paint-Batch; with `epsilon`, which has no batches, one by one in the same sequence. `cover`
gives Paint-Sparse the rectangles in which there are watchers; whoever lies in none of them hears nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidings.boards.messages.family import Family
from tidings.boards.messages.objects import FamilyObjects, Floats, Moves
from tidings.boards.messages.record import Said, said_of
from tidings.boards.messages.table import table_of
from tidings.boards.paint.batch import paint_batch
from tidings.boards.paint.paint import PaintDense, PaintSparse
from tidings.boards.paint.tiles import Messages, empty_messages
from tidings.index.points.watchers import WatchIndex
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema

NOWHERE = np.array([[[np.inf, -np.inf], [np.inf, -np.inf]]])
"""A cover of nobody: no range begins at infinity and ends before everything."""


class FamilyPainter:
    def __init__(self, schema: Schema, topic: str, family: Family) -> None:
        self.topic, self.family = topic, family
        self.objects = FamilyObjects()
        self._stands = family.stands(schema)
        self._painter = PaintDense(self.objects.index, family.k, family.epsilon)

    def take_over(self, objects: FamilyObjects) -> None:
        """Go on from these objects, as if it had painted them."""
        self.objects = objects
        self.cover(None)

    def cover(self, boxes: Floats | None) -> None:
        """Paint for watchers in these rectangles (n x 2 x 2: least (l, r), greatest (l, r)) alone; None is for all."""
        index, family = self.objects.index, self.family
        if boxes is None:
            self._painter = PaintDense(index, family.k, family.epsilon)
        else:
            self._painter = PaintSparse(index, family.k, WatchIndex.of_boxes(boxes if len(boxes) else NOWHERE), family.epsilon)

    def places(self, changes: Mapping[str, Values | None]) -> tuple[list[str], Floats, Floats]:
        at = np.array([self._stands(values) for values in changes.values()]).reshape(-1, 2)
        return list(changes), at[:, 0].copy(), at[:, 1].copy()

    def change(self, changes: Mapping[str, Values | None], sequence: int, snapshot: int, at: int) -> pa.Table:
        """The messages of objects that now have these values; None is an object gone."""
        return self.move(*self.places(changes), sequence, snapshot, at)

    def move(self, keys: Sequence[str], x: Floats, y: Floats, sequence: int, snapshot: int, at: int) -> pa.Table:
        """The same of places."""
        moves = self.objects.moves(keys, x, y)
        made = table_of(self.topic, self.family.name, sequence, snapshot, at, self._paint(moves), self.objects.keys.key)
        self.objects.forget(moves)
        return made

    def say(self, changes: Mapping[str, Values | None]) -> Said:
        """The same as `change`, for records."""
        moves = self.objects.moves(*self.places(changes))
        said = said_of(self._paint(moves), self.objects.keys.key)
        self.objects.forget(moves)
        return said

    def _paint(self, moves: Moves) -> Messages:
        if not len(moves.numbers):
            return empty_messages()[:0]
        if len(moves.numbers) == 1 or self.family.epsilon is not None:
            return self._painter.update_many(*moves)[0]
        return paint_batch(self._painter, *moves)
