"""What publishing answers: notifications as columns, in order, and as objects for those who loop.

They come in parts (plain matches, what a group of windows told), each as columns. Nothing is put together before somebody asks:
`table` gives Arrow columns without an object a notification, and whoever loops, indexes or compares gets `Notification`s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.match.answers.results import Notification, instant

WHY = ("matched", "entered", "promoted", "updated", "left", "dwelt", "digest")
MATCHED, ENTERED, PROMOTED, UPDATED, LEFT = range(5)
COLUMNS = pa.schema(
    {
        "subscription": pa.string(),
        "event": pa.string(),
        "score": pa.float64(),
        "rank": pa.int64(),
        "why": pa.string(),
        "at": pa.timestamp("us", "UTC"),
    }
)
_notification = partial(tuple.__new__, Notification)
"""From a row of its fields, at a third of the price of calling the class."""


class Texts(Protocol):
    """Strings that are made when asked for."""

    def array(self) -> pa.StringArray: ...

    def texts(self) -> list[str]: ...


class Part(NamedTuple):
    """Notifications of one kind. `rank` is 0 for none, `why` a place in WHY, `at` in microseconds."""

    subscription: Texts | list[str] | pa.StringArray
    event: Texts | list[str] | pa.StringArray
    score: NDArray[np.float64]
    rank: NDArray[np.int64] | None
    why: NDArray[np.int8] | int
    at: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.score)

    def rows(self) -> Iterator[Notification]:
        n = len(self)
        subscriptions, events = _texts(self.subscription), _texts(self.event)
        ranks = [None] * n if self.rank is None else [rank or None for rank in self.rank.tolist()]
        whys = [WHY[self.why]] * n if isinstance(self.why, int) else [WHY[why] for why in self.why.tolist()]
        return map(_notification, zip(subscriptions, events, self.score.tolist(), ranks, whys, _instants(self.at), strict=True))

    def table(self) -> pa.Table:
        n = len(self)
        why = pa.repeat(WHY[self.why], n) if isinstance(self.why, int) else pa.array(WHY).take(pa.array(self.why))
        rank = pa.nulls(n, pa.int64()) if self.rank is None else pa.array(self.rank, mask=self.rank == 0)
        columns = [_array(self.subscription), _array(self.event), pa.array(self.score), rank, why, pa.array(self.at)]
        return pa.table([column.cast(kind) for column, kind in zip(columns, COLUMNS.types, strict=True)], schema=COLUMNS)


class Notifications(Sequence[Notification]):
    """Equal to any sequence of the same notifications; never changed.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()})
    >>> notes = deals.subscribe("ann", "price < 5", time=0)
    >>> told = deals.publish({"id": "e1", "price": 3}, time=1)
    >>> len(told), told[0].event
    (1, 'e1')
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, parts: Sequence[Part], order: NDArray[np.integer] | None = None) -> None:
        """`order` are places in the parts laid end to end; None if that is the order."""
        self._parts = [part for part in parts if len(part)]
        self._order = order
        self._length = sum(map(len, self._parts))

    @classmethod
    def of(cls, notes: Sequence[Notification]) -> Notifications:
        """Of objects that are there already."""
        made = cls([])
        made._length, made.__dict__["_rows"] = len(notes), list(notes)
        return made

    @cached_property
    def _rows(self) -> list[Notification]:
        rows = [row for part in self._parts for row in part.rows()]
        return rows if self._order is None else [rows[place] for place in self._order.tolist()]

    @cached_property
    def _table(self) -> pa.Table:
        if not self._parts:
            return _table_of(self.__dict__.get("_rows", []))
        table = pa.concat_tables([part.table() for part in self._parts])
        return table if self._order is None else table.take(pa.array(self._order))

    @property
    def in_columns(self) -> bool:
        """Whether `table` says all of them, without an object each."""
        return bool(self._parts)

    def table(self) -> pa.Table:
        """(subscription, event, score, rank, why, at), in the same order.

        >>> import tidings as td
        >>> deals = td.Topic("deals", {"price": td.Number()})
        >>> notes = deals.subscribe("ann", "price < 5", time=0)
        >>> deals.publish({"id": "e1", "price": 3}, time=1).table().select(["subscription", "event", "why"]).to_pylist()
        [{'subscription': 'ann', 'event': 'e1', 'why': 'matched'}]
        """
        return self._table

    def told_of(self) -> Counter[str]:
        """How many there are of each event."""
        return Counter(self._table["event"].to_pylist() if self.in_columns else [note.event for note in self._rows])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Notification]:
        return iter(self._rows)

    @overload
    def __getitem__(self, at: int) -> Notification: ...

    @overload
    def __getitem__(self, at: slice) -> list[Notification]: ...

    def __getitem__(self, at: int | slice) -> Notification | list[Notification]:
        return self._rows[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __add__(self, other: Sequence[Notification]) -> list[Notification]:
        return [*self, *other]

    def __radd__(self, other: Sequence[Notification]) -> list[Notification]:
        return [*other, *self]

    def __repr__(self) -> str:
        return repr(self._rows)


def _instants(at: NDArray[np.int64]) -> list[datetime]:
    """Each different one is made once."""
    made: dict[int, datetime] = {}
    return [made[t] if t in made else made.setdefault(t, instant(t)) for t in at.tolist()]


def _array(column: Any) -> pa.Array:
    if isinstance(column, list):
        return pa.array(column, pa.string())
    return column if isinstance(column, pa.Array) else column.array()


def _texts(column: Any) -> list[str]:
    texts: list[str] = column.to_pylist() if isinstance(column, pa.Array) else column
    return texts if isinstance(texts, list) else column.texts()


def _table_of(notes: Sequence[Notification]) -> pa.Table:
    columns = zip(*notes, strict=True) if notes else [()] * len(COLUMNS)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, COLUMNS.types, strict=True)], schema=COLUMNS)
