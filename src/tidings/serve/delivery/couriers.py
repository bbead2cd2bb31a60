"""Couriers: one a sink. Each carries its notes at least once, in order for each subscription, and waits for nobody else's sink.

Notes are dealt to LANES by subscription; a lane sends one message after the other, so a subscription's notes never overtake each
other while different ones go at the same time. A lane whose receiver does not take a note tries again, later each time, and only
that lane waits. The cursor is the number below which everything was taken or became a dead letter; it is saved every SAVED seconds,
so after a crash at most that much is sent again, with the same ids. No more than AHEAD notes are held: the rest waits in the
outbox, whose bound is the topic's backlog, and what fell out of it before it could be sent is counted in `lost`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from tidings.durable.waiting import Waiting
from tidings.serve.delivery.letters import Letters
from tidings.serve.delivery.outcomes import CLOSED, LATER, REFUSED, TAKEN, Outcome, delay_of
from tidings.serve.delivery.senders import CloudEvents, Http, Kafka, Postgres, Sender, Webhooks
from tidings.serve.delivery.sinks import CLOUDEVENTS, KAFKA, OFF, ON, WEBHOOK, Sink, Sinks
from tidings.serve.hearing.following import follow
from tidings.serve.hearing.listening import Listening
from tidings.serve.hearing.notes import Note

log = logging.getLogger("tidings.serve")
LANES = 16
AHEAD = 2000
SAVED = 0.5


def sender_of(http: Http, sink: Sink) -> Sender:
    kind = sink.target.kind
    if kind == WEBHOOK:
        return Webhooks(http, sink)
    if kind == CLOUDEVENTS:
        return CloudEvents(http, sink)
    return Kafka(sink) if kind == KAFKA else Postgres(sink)


class Courier:
    def __init__(self, tail: Listening, sink: Sink, sender: Sender, letters: Letters, changed: Callable[[], None]) -> None:
        self.tail, self.sink, self.sender = tail, sink, sender
        self._letters, self._changed = letters, changed
        self._draw = random.Random()
        self._held: dict[int, None] = {}
        """numbers that are under way, ascending"""
        self._read = sink.cursor
        self._queues: defaultdict[int, deque[Note]] = defaultdict(deque)
        self._lanes: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Event()
        self._room.set()
        self._listener = tail.enter(sink.target.selection)
        self._task = asyncio.create_task(self._run())

    @property
    def behind(self) -> int:
        """How many numbers of the topic lie before it."""
        return max(self.tail.at - self.sink.cursor, 0)

    async def _run(self) -> None:
        async for heard in follow(self.tail, self._listener, self.sink.cursor):
            if heard.gone is not None:
                self.sink.lost += heard.gone - heard.cursor
                self._read = max(self._read, heard.gone)
            for note in heard.notes:
                self._take(note)
            self._read = max(self._read, heard.cursor)
            self._moved()
            await self._room.wait()

    def _take(self, note: Note) -> None:
        self._held[note.number] = None
        lane = zlib.crc32(note.waiting.subscription.encode("utf-8", "surrogatepass")) % LANES
        self._queues[lane].append(note)
        if lane not in self._lanes:
            self._lanes[lane] = asyncio.create_task(self._carry(lane))
        if len(self._held) >= AHEAD:
            self._room.clear()

    def _moved(self) -> None:
        """Set the cursor below the first that is still under way."""
        first = next(iter(self._held), None)
        cursor = self._read if first is None else first - 1
        if cursor > self.sink.cursor:
            self.sink.cursor = cursor
            self._changed()

    async def _carry(self, lane: int) -> None:
        queue = self._queues[lane]
        while queue and self.sink.status == ON:
            notes = [queue.popleft() for _ in range(min(len(queue), self.sink.target.batch))]
            await self._deliver(notes)
            for note in notes:
                del self._held[note.number]
            if len(self._held) < AHEAD:
                self._room.set()
            self._moved()
        del self._lanes[lane]

    async def _deliver(self, notes: Sequence[Note]) -> None:
        """Try until it is taken, refused or too late."""
        began, attempt = time.monotonic(), 0
        while True:
            outcome = await self._attempt(notes)
            attempt += 1
            if outcome.kind == TAKEN:
                self.sink.delivered += len(notes)
                self.sink.failing = ""
                return
            if outcome.kind == CLOSED:
                self._switch_off(outcome.reason)
                await asyncio.Event().wait()
            wait = delay_of(attempt, self._draw) if outcome.wait is None else outcome.wait
            late = time.monotonic() - began + wait > self.sink.target.give_up
            if outcome.kind == REFUSED or late:
                await self._bury(notes, outcome, attempt)
                return
            assert outcome.kind == LATER
            self.sink.failing = outcome.reason
            self._changed()
            await asyncio.sleep(wait)

    async def _attempt(self, notes: Sequence[Note]) -> Outcome:
        try:
            return await self.sender.send(notes)
        except Exception as error:
            log.error("a sink failed", exc_info=error, extra={"topic": self.tail.name, "sink": self.sink.name})
            return Outcome(LATER, f"failed: {type(error).__name__}")

    async def _bury(self, notes: Sequence[Note], outcome: Outcome, attempt: int) -> None:
        """Each for itself: of a batch that is refused, one may be the reason."""
        if len(notes) > 1 and outcome.kind == REFUSED:
            for note in notes:
                await self._deliver([note])
            return
        reason = outcome.reason if outcome.kind == REFUSED else f"{outcome.reason}; given up after {attempt} attempts"
        await asyncio.to_thread(self._letters.put, self.tail.name, self.sink.name, notes, reason)

    def _switch_off(self, reason: str) -> None:
        """Nothing is sent any more; what is under way stays before the cursor, for when it is switched on again."""
        self.sink.status, self.sink.reason = OFF, reason
        self._changed()
        self._listener.over = True
        self._listener.woken.set()

    async def stop(self) -> None:
        tasks = [self._task, *self._lanes.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.tail.leave(self._listener)
        await self.sender.close()


class Couriers:
    """The couriers of every topic, and the one who saves how far they are."""

    def __init__(self, sinks: Sinks, letters: Letters, allowed: Sequence[str]) -> None:
        self.sinks, self.letters = sinks, letters
        self.http = Http(allowed)
        self.known: dict[tuple[str, str], Sink] = {}
        self.running: dict[tuple[str, str], Courier] = {}
        self._changed: set[tuple[str, str]] = set()

    def open(self, tail: Listening, sinks: Sequence[Sink]) -> None:
        for sink in sinks:
            self.start(tail, sink)

    def start(self, tail: Listening, sink: Sink) -> None:
        at = (tail.name, sink.name)
        self.known[at] = sink
        if sink.status == ON:
            self.running[at] = Courier(tail, sink, sender_of(self.http, sink), self.letters, lambda: self._changed.add(at))

    async def stop(self, topic: str, name: str) -> None:
        courier = self.running.pop((topic, name), None)
        if courier is not None:
            await courier.stop()
        await self.save()

    async def close(self, topic: str) -> None:
        for other, name in [at for at in self.known if at[0] == topic]:
            await self.stop(other, name)
            del self.known[other, name]

    async def send_letter(self, topic: str, sink: Sink, letter: dict[str, Any]) -> Outcome:
        """One attempt at a dead letter, with the id that it had."""
        fields = orjson.loads(orjson.dumps(letter["notification"]))
        event = orjson.dumps(fields["event"])
        del fields["topic"]
        sender = sender_of(self.http, sink)
        try:
            return await sender.send([Note(topic, Waiting(**fields), event)])
        finally:
            await sender.close()

    def of(self, topic: str) -> list[Sink]:
        return [sink for (name, _), sink in sorted(self.known.items()) if name == topic]

    async def save(self) -> None:
        changed, self._changed = self._changed, set()
        rows = [(at[0], self.known[at]) for at in changed if at in self.known]
        if rows:
            await asyncio.to_thread(self.sinks.save, rows)

    async def keep_saving(self) -> None:
        while True:
            await asyncio.sleep(SAVED)
            await self.save()
