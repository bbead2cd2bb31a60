"""A keyed topic's changes as messages: the painters of its families, and what has to be painted next.

The publisher notes the keys that it touched; asked for messages, every painter compares what it painted last with what is there
now. So messages lead from one state of the topic to another whatever came between, and after a change that was undone, when the
publisher is another one, all objects are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from tidings.boards.messages.family import Family
from tidings.boards.messages.painter import FamilyPainter
from tidings.boards.messages.table import no_messages
from tidings.model.door.event import Event
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Schema


class Objects(Protocol):
    def __iter__(self) -> Iterator[Event]: ...

    def get(self, id: str) -> Event | None: ...


class Publishing(Protocol):
    """What of a topic's publisher is asked for."""

    touched: set[str] | None

    @property
    def events(self) -> Objects: ...

    @property
    def clock(self) -> int | None: ...


class Touched:
    """Which objects of a topic are others than when it was last asked; all of them where that is not known."""

    def __init__(self) -> None:
        self._publisher: Publishing | None = None

    def forget(self) -> None:
        """All have to be compared next."""
        self._publisher = None

    def take(self, publisher: Publishing, known: Iterable[str]) -> dict[str, Values | None]:
        """Their values, None for those that are gone; `known` are the keys of those that were told of before."""
        if publisher is not self._publisher or publisher.touched is None:
            self._publisher, publisher.touched = publisher, set()
            there: dict[str, Values | None] = {event.id: event.values for event in publisher.events}
            return {key: None for key in known if key not in there} | there
        touched, publisher.touched = publisher.touched, set()
        events = {key: publisher.events.get(key) for key in sorted(touched)}
        return {key: None if event is None else event.values for key, event in events.items()}


class Painted:
    def __init__(self, topic: str, schema: Schema) -> None:
        self._topic, self._schema = topic, schema
        self.painters: dict[str, FamilyPainter] = {}
        self.sequence = 0
        """of the last messages"""
        self._touched = Touched()

    def add(self, family: Family) -> None:
        self.painters.setdefault(family.name, FamilyPainter(self._schema, self._topic, family))
        self._touched.forget()

    def adopt(self, publisher: Publishing) -> None:
        """Take the objects that are there for painted."""
        for painter in self.painters.values():
            painter.objects.apply(painter.objects.moves(*painter.places(self._touched.take(publisher, ()))))

    def touched(self, publisher: Publishing) -> dict[str, Values | None]:
        """What has changed since last asked."""
        return self._touched.take(publisher, (key for p in self.painters.values() for key in p.objects.keys.number))

    def messages(self, publisher: Publishing) -> pa.Table:
        """The same as messages, one sequence; without rows if that concerns no list there could be."""
        changes = self.touched(publisher)
        if not changes:
            return no_messages()
        self.sequence += 1
        said = self.sequence, self.sequence - 1, publisher.clock or 0
        return pa.concat_tables([painter.change(changes, *said) for painter in self.painters.values()])
