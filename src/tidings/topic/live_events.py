"""The live events of a topic: what `search` and `replay` look through. An event is live while the clock is before its `expires`.

They lie in a dict by id. What came since the last search is its *tail*; a search asks the definition of a tail of up to TAIL events
and puts a longer one into an `MOEventTree`, all at once, under numbers of their own. So whoever publishes and never searches pays
for no index, and for few events nothing is compiled. The codes of their strings are their own: a topic's vocabularies know only the
words that subscriptions ask for, and a search may ask for any. The tree's steps are measured on the events themselves, and the
number of its cells follows from how many there are and how wide the last searches were, anew each time there are GROWTH times as
many.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from tidings.index.motree.event_tree import MOEventTree
from tidings.index.motree.partition import value_cell_counts
from tidings.match.store.hits import LONG_AGO, NEVER
from tidings.model.columns.arrays import ClauseColumns, EventColumns, Vocabularies, encode_clauses, encode_events
from tidings.model.door.event import Event
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Schema
from tidings.topic.tree_axes import event_axes, searched_widths

TAIL = 256
FIRST, GROWTH = 1024, 8
HEIGHT, REMEMBERED = 3, 64


class LiveEvents:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._events: dict[str, Event] = {}
        self._tail: dict[str, Event] = {}
        self._expiry: list[tuple[int, str]] = []
        self._expiring = 0
        self._vocabularies = Vocabularies(schema)
        self._number: dict[str, int] = {}
        self._id: dict[int, str] = {}
        self._next = 0
        self._searched: deque[ClauseColumns] = deque(maxlen=REMEMBERED)
        self._measured_at = FIRST
        self._tree: MOEventTree | None = None

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events.values())

    def get(self, id: str) -> Event | None:
        return self._events.get(id)

    def put(self, event: Event) -> None:
        self.remove(event.id)
        self._events[event.id] = self._tail[event.id] = event
        if event.expires is not None:
            self._expire_at(event.expires, event.id)

    def _expire_at(self, expires: int, id: str) -> None:
        """Entries of events that were replaced or removed stay until the heap is twice as long as when it last had none."""
        heapq.heappush(self._expiry, (expires, id))
        if len(self._expiry) > 2 * self._expiring + FIRST:
            self._expiry = [(e.expires, e.id) for e in self._events.values() if e.expires is not None]
            heapq.heapify(self._expiry)
            self._expiring = len(self._expiry)

    def _index_tail(self) -> MOEventTree:
        if self._tree is None or len(self._events) >= self._measured_at:
            while len(self._events) >= self._measured_at:
                self._measured_at *= GROWTH
            self._tree = self._measured()
            self._insert(self._tree, list(self._events.values()))
        else:
            self._insert(self._tree, list(self._tail.values()))
        self._tail.clear()
        return self._tree

    def _insert(self, tree: MOEventTree, events: list[Event]) -> None:
        names = np.arange(self._next, self._next + len(events), dtype=np.int32)
        self._next += len(events)
        for number, event in zip(names.tolist(), events, strict=True):
            self._number[event.id], self._id[number] = number, event.id
        expires = np.array([NEVER if event.expires is None else event.expires for event in events], np.int64)
        tree.insert(names, self._encoded(events), expires)

    def _encoded(self, events: list[Event]) -> EventColumns:
        for event in events:
            for name, vocabulary in self._vocabularies.categories.items():
                if name in event.values:
                    vocabulary.add(event.values[name])
            for word in event.values.get(self._schema.words or "", ()):
                self._vocabularies.words.add(word)
        return encode_events(self._schema, self._vocabularies, [event.values for event in events])

    def _measured(self) -> MOEventTree:
        """A new, empty tree, with steps measured on the events there are."""
        events = list(self._events.values())
        self._number, self._id, self._next = {}, {}, 0
        sample = self._encoded(events)
        axes = event_axes(self._schema, self._vocabularies, sample)
        stacked = axes[:HEIGHT]
        counts = value_cell_counts(len(events), searched_widths(stacked, sample, list(self._searched)))
        cells = counts + [1] * (len(axes) - len(stacked))
        return MOEventTree(axes, len(self._schema.ranges) + 2, HEIGHT, cells)

    def remove(self, id: str) -> None:
        if self._events.pop(id, None) is not None and self._tail.pop(id, None) is None:
            assert self._tree is not None
            number = self._number.pop(id)
            del self._id[number]
            self._tree.delete(np.array([number], np.int32))

    def expire(self, time: int) -> list[Event]:
        """Drop and give back what is no longer live at `time`, in the order of expiry."""
        gone = []
        while self._expiry and self._expiry[0][0] <= time:
            expires, id = heapq.heappop(self._expiry)
            event = self._events.get(id)
            if event is not None and event.expires == expires:
                self.remove(id)
                gone.append(event)
        return gone

    def ended(self, time: int) -> set[str]:
        """Of the live events, those that are no longer so at `time`."""
        if not self._expiry or self._expiry[0][0] > time:
            return set()
        return {e.id for e in self._events.values() if e.expires is not None and e.expires <= time}

    def search(self, clauses: Iterable[Clause], time: int) -> list[Event]:
        """The live events that satisfy any of the clauses, by id.

        The tree is asked for a time before all: it drops what has expired by then, and a search may look ahead of the clock.
        """
        clauses = list(clauses)
        tree = self._index_tail() if len(self._tail) > TAIL else self._tree
        found = {
            id: event
            for id, event in self._tail.items()
            if (event.expires is None or time < event.expires) and any(c.holds(self._schema, event.values) for c in clauses)
        }
        for clause in clauses if tree is not None else ():
            assert tree is not None
            columns = encode_clauses(self._schema, self._vocabularies, [clause], [0])
            self._searched.append(columns)
            for number in tree.search(columns, LONG_AGO).tolist():
                event = self._events[self._id[number]]
                live = event.expires is None or time < event.expires
                if live and all(residue.test(event.values) for residue in clause.residue):
                    found[event.id] = event
        return [found[id] for id in sorted(found)]
