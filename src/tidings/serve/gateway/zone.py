"""One zone: the watchers of a part of every family's plane, their lists, and what they are told.

A note's number is its sequence, shifted, and its place among what one watcher is told of it: the same at every gateway, so that
who was heard to a number here goes on after it elsewhere. Everything but the tail is used by the gateway's thread alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import numpy as np
import orjson
from confluent_kafka import Message, TopicPartition

from tidings.boards.messages.followers import Followers, Told
from tidings.boards.messages.record import OLD, Said, joined, old_common, unpacked
from tidings.durable.waiting import Waiting
from tidings.kafka.layout import Plan
from tidings.kafka.records import Origin, Watcher, headers
from tidings.kafka.replica import Replica
from tidings.match.answers.results import Notification, instant
from tidings.serve.hearing.listening import Listening, Page, Selection
from tidings.serve.hearing.notes import Note

SHIFT = 20
FURTHEST = 2**62


def number_of(sequence: int, place: int = 0) -> int:
    """Above it is what comes after a sequence, with the last place."""
    return sequence << SHIFT | place


LAST = (1 << SHIFT) - 1


class ZoneTail(Listening):
    """The newest notes of a zone; what it no longer has is gone, for whoever takes the zone over has no more."""

    def ends(self) -> tuple[int, int]:
        return self._ring_from, FURTHEST

    def page(self, selection: Selection, after: int, limit: int, upto: int | None = None) -> Page:
        raise AssertionError("a zone has no notes but those in memory")

    def tell(self, notes: list[Note], upto: int) -> None:
        """In the event loop."""
        self._told(notes, max(upto, self.at))


class Position(NamedTuple):
    """Everything up to `sequence` is told, and the record at `offset` is next; `at` is when that was, in seconds."""

    at: float
    offset: int
    sequence: int


class Start(NamedTuple):
    """What a zone is loaded from: the objects of a sequence up to which all was told, and what came before a split. Without either
    it is the newest objects. Webhooks have taken everything up to `sent`."""

    sequence: int | None = None
    sent: int = 0
    origin: Origin | None = None


class Zone:
    def __init__(self, plan: Plan, number: int) -> None:
        self.plan, self.number = plan, number
        self.followers = [Followers(family.k) for family in plan.families]
        self.called: dict[str, Watcher] = {}
        """watchers that are told, by id; of the others only the lists are kept"""
        self.waiting: dict[str, Watcher] = {}
        """those of a zone that is not loaded yet"""
        self.ready = False
        self.sequence = self.began = 0
        """of the last messages; of the objects that it was loaded from"""
        self.offset = 0
        """of the next record, as far as it is known"""
        self.noted = self.watched = 0
        """the same of other subscriptions' notes, and of watchers"""
        self.own: set[int] = set()
        """offsets of watchers' records that this gateway wrote, and need not hear of"""
        self.positions: deque[Position] = deque()
        self.note_positions: deque[tuple[float, int]] = deque()
        """when each of these notes came"""
        self.owed: TopicPartition | None = None
        """the position that Kafka has not taken yet"""
        self.settled = False
        """Kafka knows a position, so that whoever takes the zone over begins before every watcher that begins now"""
        self.origin: Origin | None = None
        """where watchers came from with a split, until a position of this zone is committed"""
        self._parts: list[Said] = []
        self._heard: list[Note] = []
        """of the last sequence, of which more may come"""

    def __len__(self) -> int:
        return sum(map(len, self.followers))

    def find(self, id: str) -> Followers | None:
        return next((followers for followers in self.followers if id in followers), None)

    def load(self, sequence: int, replica: Replica) -> None:
        """Begin all who wait: lists as of the sequence, and of those that came later as of when they came."""
        self.sequence = self.began = sequence
        for followers in self.followers:
            followers.sequence = sequence
        late = sorted(self.waiting.values(), key=lambda watcher: max(watcher.since, sequence))
        for since, group in groupby(late, key=lambda watcher: max(watcher.since, sequence)):
            self.begin(group, replica, replica.reach(since))
        self.waiting = {}
        self.ready = True

    def begin(self, watchers: Iterable[Watcher], replica: Replica, since: int) -> None:
        """With their lists of the replica's objects, which are of sequence `since`."""
        by_family: dict[str, list[Watcher]] = {}
        for watcher in watchers:
            by_family.setdefault(watcher.family, []).append(watcher)
        for name, group in by_family.items():
            at = self.plan.family(name)
            points = np.array([(watcher.l, watcher.r) for watcher in group])
            ks, told = [watcher.k for watcher in group], [watcher.told for watcher in group]
            self.followers[at].begin([watcher.id for watcher in group], points, ks, told, replica.objects[at], since)
        self.called |= {watcher.id: watcher for group in by_family.values() for watcher in group if watcher.told}

    def end(self, id: str) -> None:
        self.waiting.pop(id, None)
        self.called.pop(id, None)
        followers = self.find(id)
        if followers is not None:
            followers.end(id)

    def knows(self, watcher: Watcher) -> bool:
        """Whether it is there, and the same."""
        called, followers = self.called.get(watcher.id), self.find(watcher.id)
        if followers is None or (called is None) == watcher.told:
            return False
        there = followers.point(watcher.id) == (watcher.l, watcher.r) and followers.limit(watcher.id) == watcher.k
        return there and (called is None or (called.url, called.family) == (watcher.url, watcher.family))

    def hear(self, record: Message, now: float) -> tuple[list[Note], int]:
        """Follow a record of messages: what is to be told, and up to which number that is all. A sequence is told whole, when the
        next begins or there is no more (`complete`): each family has records of its own."""
        said = headers(record)
        sequence = int(said["sequence"])
        due: tuple[list[Note], int] = [], number_of(sequence - 1, LAST)
        if sequence > self.sequence:
            due = self._heard, due[1]
            self._heard = []
            self.positions.append(Position(now, record.offset(), self.sequence))
            self.sequence = sequence
        self.offset = record.offset() + 1
        version = int(said["version"])
        self._parts.append(unpacked(record.value(), version))
        if int(said["left"]):
            return due
        parts, self._parts = self._parts, []
        at, name = (int(said["at"]), said["family"].decode()) if version != OLD else old_common(record.value())
        family = self.plan.family(name)
        told = self.followers[family].hear(joined(parts), sequence)
        self._heard += [self._note(told_one, number_of(sequence, place), at, family) for place, told_one in placed(told)]
        return due if len(self.followers) > 1 else self.complete()

    def complete(self) -> tuple[list[Note], int]:
        """Nothing of the last sequence is to come: what there is to be told of it."""
        heard, self._heard = self._heard, []
        return heard, number_of(self.sequence, LAST)

    def _note(self, told: Told, number: int, at: int, family: int) -> Note:
        note = Notification(told.watcher, told.key, told.score, told.rank, told.why, instant(at))
        owner = self.called[told.watcher].owner
        row = Waiting(number, note.id, told.watcher, told.key, told.score, told.rank, told.why, note.at.isoformat(), owner)
        event = {self.plan.key: told.key, self.plan.families[family].attribute: told.x}
        return Note(self.plan.topic, row, orjson.dumps(event))

    @property
    def first(self) -> Position:
        """The oldest position that is known: whoever takes the zone over begins there."""
        return self.positions[0] if self.positions else Position(-math.inf, self.offset, self.sequence)

    def commit_at(self, before: float, sent: int) -> Position | None:
        """The last position that is older than `before` and of which all is sent, which is then forgotten."""
        found = None
        while self.positions and self.positions[0].at <= before and self.positions[0].sequence <= sent:
            found = self.positions.popleft()
        return found


def placed(told: list[Told]) -> Iterable[tuple[int, Told]]:
    """Each with its place among those of its watcher."""
    for _, group in groupby(told, key=lambda one: one.watcher):
        yield from enumerate(group)
