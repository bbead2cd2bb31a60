"""The end of a topic's outbox, told to who listens.

One thread reads what is new (woken after each commit; beside a writer of another process it looks itself), makes notes of it, and
hands them to the event loop in one step. While somebody listens, the newest RING notes stay in memory, by subscription and by
owner, so that thousands who come back at once do not ask the disk.

Nothing is missed and nothing comes twice, as `listening` has it: numbers ascend with commits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from tidings.durable.outbox import OutboxReader
from tidings.durable.waiting import Waiting
from tidings.serve.hearing.listening import PAGE, Listener, Listening, Page, Selection
from tidings.serve.hearing.notes import Note, Notes
from tidings.serve.hosting.hosted_topic import HostedTopic

LOOK = 0.02
"""Seconds between looks at a registry that another process writes."""


class Tail(Listening):
    def __init__(self, hosted: HostedTopic, loop: asyncio.AbstractEventLoop, *, looks: bool = False) -> None:
        """`looks` if another process writes."""
        topic = hosted.topic
        self.reader = OutboxReader(hosted.folder)
        super().__init__(hosted.folder.name, self.reader.ends()[1])
        self._notes = Notes(self.name, topic.schema, topic.key, self.reader)
        self._loop, self._looks = loop, looks
        self._turn, self._making = threading.Condition(), threading.Lock()
        self._news = self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"the tail of {self.name}", daemon=True)
        self._thread.start()
        hosted.listeners.append(self.poke)

    def enter(self, selection: Selection) -> Listener:
        if not self.listening:
            self.poke()
        return super().enter(selection)

    def ends(self) -> tuple[int, int]:
        return self.reader.ends()

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
