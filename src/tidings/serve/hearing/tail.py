"""The end of a topic's outbox, told to who listens.

One thread reads what is new (woken after each commit; beside a writer of another process it looks itself), makes notes of it, and
hands them to the event loop in one step. While somebody listens, the newest RING notes stay in memory, by subscription and by
owner, so that thousands who come back at once do not ask the disk.

Nothing is missed and nothing comes twice: numbers ascend with commits, a listener is entered at a number, hears what comes after
it, and reads what came before it. One that does not keep up is not waited for: past BOUND it is let go and told to read on from
the outbox where it stopped (`Listener.behind`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.durable.outbox import OutboxReader, Waiting
from tidings.serve.hearing.notes import Note, Notes
from tidings.serve.hosting.hosted_topic import HostedTopic

RING = 65_536
BOUND = 1000
PAGE = 1000
LOOK = 0.02
"""Seconds between looks at a registry that another process writes."""


class Selection(NamedTuple):
    """Whose notifications: of one subscription, of one owner, or of both together; all without either."""

    subscription: str | None = None
    owner: str | None = None

    def takes(self, note: Note) -> bool:
        w = note.waiting
        return self.subscription in (None, w.subscription) and self.owner in (None, w.owner)

    @property
    def place(self) -> tuple[str, str]:
        """Where its notes are gathered."""
        if self.subscription is not None:
            return "subscription", self.subscription
        return ("owner", self.owner) if self.owner is not None else ("", "")


class Page(NamedTuple):
    """`cursor` is how far it goes: nothing of the selection lies between its last note and it."""

    notes: list[Note]
    cursor: int


@dataclass(eq=False, slots=True)
class Listener:
    """Hears of the notes above `since`; `woken` is set when there are some, or it is behind, or all is over."""

    selection: Selection
    since: int
    pending: list[Note] = field(default_factory=list)
    behind: bool = False
    over: bool = False
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, note: Note) -> None:
        if self.behind or not self.selection.takes(note):
            return
        if len(self.pending) >= BOUND:
            self.behind, self.pending = True, []
        else:
            self.pending.append(note)
        self.woken.set()

    def take(self) -> list[Note]:
        self.woken.clear()
        taken, self.pending = self.pending, []
        return taken


class Tail:
    def __init__(self, hosted: HostedTopic, loop: asyncio.AbstractEventLoop, *, looks: bool = False) -> None:
        """`looks` if another process writes."""
        topic = hosted.topic
        self.name = hosted.folder.name
        self.reader = OutboxReader(hosted.folder)
        self._notes = Notes(self.name, topic.schema, topic.key, self.reader)
        self.at = self.reader.ends()[1]
        """everything up to this number was told"""
        self._loop, self._looks = loop, looks
        self._listeners: defaultdict[tuple[str, str], set[Listener]] = defaultdict(set)
        self._ring: deque[Note] = deque()
        self._placed: defaultdict[tuple[str, str], deque[Note]] = defaultdict(deque)
        self._ring_from = self.at
        self._turn, self._making = threading.Condition(), threading.Lock()
        self._news = self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"the tail of {self.name}", daemon=True)
        self._thread.start()
        hosted.listeners.append(self.poke)

    @property
    def listening(self) -> int:
        return sum(map(len, self._listeners.values()))

    # In the event loop

    def enter(self, selection: Selection) -> Listener:
        """Somebody who hears of all that is told from now on."""
        listener = Listener(selection, self.at)
        if not self.listening:
            self.poke()
        self._listeners[selection.place].add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        place = listener.selection.place
        self._listeners[place].discard(listener)
        if not self._listeners[place]:
            del self._listeners[place]

    def again(self, listener: Listener) -> None:
        """One that was behind hears again, from now on."""
        listener.behind, listener.pending, listener.since = False, [], self.at

    def wake_all(self) -> None:
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.woken.set()

    def end(self) -> None:
        """Nobody hears any more."""
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.over = True
                listener.woken.set()

    def kept(self, selection: Selection, after: int, upto: int) -> list[Note] | None:
        """What the memory has of the selection in (after, upto]; None if it does not reach back so far."""
        if after < self._ring_from:
            return None
        placed = self._ring if selection.place == ("", "") else self._placed.get(selection.place, ())
        found: list[Note] = []
        for note in reversed(placed):
            if note.number <= after:
                break
            if note.number <= upto and selection.takes(note):
                found.append(note)
        return found[::-1]

    def _told(self, notes: list[Note], upto: int) -> None:
        """In the event loop: everybody hears; then the number stands for what was told."""
        everybody = self._listeners.get(("", ""), ())
        for note in notes:
            w = note.waiting
            places = (
                [("subscription", w.subscription)] if w.owner is None else [("subscription", w.subscription), ("owner", w.owner)]
            )
            self._remember(note, places)
            for place in places:
                for listener in self._listeners.get(place, ()):
                    listener.hear(note)
            for listener in everybody:
                listener.hear(note)
        self.at = upto

    def _remember(self, note: Note, places: Iterable[tuple[str, str]]) -> None:
        self._ring.append(note)
        for place in places:
            self._placed[place].append(note)
        if len(self._ring) > RING:
            gone = self._ring.popleft()
            self._ring_from = gone.number
            for place in (("subscription", gone.waiting.subscription), ("owner", gone.waiting.owner or "")):
                placed = self._placed.get(place)
                if placed is not None and placed and placed[0] is gone:
                    placed.popleft()
                    if not placed:
                        del self._placed[place]

    # In any thread

    def poke(self) -> None:
        with self._turn:
            self._news = True
            self._turn.notify()

    def page(self, selection: Selection, after: int, limit: int, upto: int | None = None) -> Page:
        """The first notes of the selection above `after`, from the disk."""
        newest = self.reader.ends()[1] if upto is None else upto
        rows = self.reader.after(after, limit, subscription=selection.subscription, owner=selection.owner, upto=newest)
        cursor = rows[-1].number if len(rows) == limit else max(newest, after)
        return Page(self.notes_of(rows), cursor)

    def notes_of(self, rows: Sequence[Waiting]) -> list[Note]:
        with self._making:
            return self._notes.of(rows)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify()
        self._thread.join()
        self.reader.close()

    def _run(self) -> None:
        read, version = self.at, 0
        while True:
            with self._turn:
                if not self._news and not self._closed:
                    self._turn.wait(LOOK if self._looks and self._listeners else None if not self._looks else 0.25)
                if self._closed:
                    return
                news, self._news = self._news, False
            if self._looks and not news:
                seen = self.reader.version()
                if seen == version:
                    continue
                version = seen
            read = self._read_on(read)

    def _read_on(self, read: int) -> int:
        """Tell what is above `read`; without listeners nothing is read, only the number goes on."""
        newest = self.reader.ends()[1]
        if not self._listeners:
            if newest > read:
                self._loop.call_soon_threadsafe(self._skip, newest)
            return newest
        while read < newest:
            rows = self.reader.after(read, PAGE, upto=newest)
            upto = rows[-1].number if len(rows) == PAGE else newest
            self._loop.call_soon_threadsafe(self._told, self.notes_of(rows), upto)
            read = upto
        return read

    def _skip(self, newest: int) -> None:
        """Nobody listened: the memory begins anew. Whoever entered meanwhile reads it as one that is behind."""
        self._ring.clear()
        self._placed.clear()
        self._ring_from = self.at = newest
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.behind, listener.pending = True, []
                listener.woken.set()
