"""Whoever listens, and the newest notes in memory: the half of a tail that lives in the event loop.

Nothing is missed and nothing comes twice: of one subscription, numbers ascend, a listener is entered at a number, hears what comes
after it, and reads what came before it. One that does not keep up is not waited for: past BOUND it is let go and told to read on
where it stopped (`Listener.behind`). The newest RING notes stay in memory, by subscription and by owner.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.serve.hearing.notes import Note

RING = 65_536
BOUND = 1000
PAGE = 1000


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


class Listening:
    def __init__(self, name: str, at: int) -> None:
        self.name, self.at = name, at
        """everything up to `at` was told"""
        self._listeners: defaultdict[tuple[str, str], set[Listener]] = defaultdict(set)
        self._ring: deque[Note] = deque()
        self._placed: defaultdict[tuple[str, str], deque[Note]] = defaultdict(deque)
        self._ring_from = at

    def ends(self) -> tuple[int, int]:
        """The last number that is gone, and the newest that a listener may know of."""
        raise NotImplementedError

    def page(self, selection: Selection, after: int, limit: int, upto: int | None = None) -> Page:
        """The first notes of the selection above `after`, of what memory does not have."""
        raise NotImplementedError

    @property
    def listening(self) -> int:
        return sum(map(len, self._listeners.values()))

    # In the event loop

    def enter(self, selection: Selection) -> Listener:
        """Somebody who hears of all that is told from now on."""
        listener = Listener(selection, self.at)
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

    def end(self, selection: Selection | None = None) -> None:
        """Nobody hears any more, or nobody of a selection."""
        for place, listeners in self._listeners.items():
            for listener in listeners if selection is None or place == selection.place else ():
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
            self._ring_from = max(self._ring_from, gone.number)
            for place in (("subscription", gone.waiting.subscription), ("owner", gone.waiting.owner or "")):
                placed = self._placed.get(place)
                if placed is not None and placed and placed[0] is gone:
                    placed.popleft()
                    if not placed:
                        del self._placed[place]
