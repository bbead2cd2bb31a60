"""What a peer is asked, and tidings' own side of a row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

import tidings as td
from benchmarks.workloads import Workload

Answers = list[list[int]]
"""For each event the rows of the subscriptions that it finds; in order of score where `k` is given, else by row."""


class Unavailable(Exception):
    """A peer that cannot be had here, and why."""


class Measured(NamedTuple):
    """What a peer found, and its CPU seconds an event, in batches and one by one."""

    answers: Answers
    batch: float
    single: float


class Peer(Protocol):
    """One system, asked for one workload."""

    name: str
    version: str

    def measure(self, task: Task) -> Measured:
        """Load the subscriptions, answer every event, and say what that cost; raises `Unavailable`."""


@dataclass(frozen=True)
class Task:
    """A workload, and what is asked of it: the `k` best by score or all, by matching or, so that everyone is told, by publishing.

    Peers that are slow answer the first `few` events.
    """

    label: str
    workload: Workload
    k: int | None = None
    publishing: bool = False
    few: int = 200

    @property
    def subscriptions(self) -> int:
        return len(self.workload.subscriptions)

    def corners(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        corners = self.workload.subscriptions["place.box"].combine_chunks().flatten()
        return np.asarray(corners.to_numpy()).reshape(-1, 4)

    def events(self, most: int | None = None) -> list[dict[str, Any]]:
        """As dicts without what is missing, a place as (x, y)."""
        rows = self.workload.events.slice(0, self.few if most is None else most).to_pylist()
        return [{name: plain(value) for name, value in row.items() if value is not None} for row in rows]


def plain(value: Any) -> Any:
    return (value["x"], value["y"]) if isinstance(value, dict) else value


def tidings_side(task: Task) -> Measured:
    """The answers of the first `few` events, and what an event of the whole batch and a single one cost."""
    topic = td.Topic(task.workload.name, task.workload.schema)
    topic.subscribe_many(task.workload.subscriptions, time=0)
    topic.flush()
    topic.match_batch(task.workload.events.slice(0, 100), task.k, time=0)
    events = task.events()
    topic.match(events[0], task.k, time=0)
    answers = rows_of(topic.match_batch(task.workload.events.slice(0, task.few), task.k, time=0), task)
    if task.publishing:
        topic.publish(events[0], time=0)
        batch = least(lambda: topic.publish_batch(task.workload.events, time=0).table)
        single = least(lambda: [list(topic.publish(event, time=0)) for event in events])
    else:
        batch = least(lambda: topic.match_batch(task.workload.events, task.k, time=0))
        single = least(lambda: [topic.match(event, task.k, time=0) for event in events])
    return Measured(answers, batch / len(task.workload.events), single / len(events))


def rows_of(found: pa.Table, task: Task) -> Answers:
    answers: Answers = [[] for _ in range(task.few)]
    events = {name: row for row, name in enumerate(task.workload.events["id"].slice(0, task.few).to_pylist())}
    for event, subscription in zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True):
        answers[events[event]].append(int(subscription[1:]))
    return answers if task.k else [sorted(rows) for rows in answers]


def least(act: Callable[[], Any], repeats: int = 3) -> float:
    """CPU seconds of this process, of the cheapest of several runs."""
    return min(timed(act) for _ in range(repeats))


def timed(act: Callable[[], Any]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def best(found: Sequence[int] | np.ndarray[Any, Any], score: np.ndarray[Any, Any], k: int | None) -> list[int]:
    """The k best by score, or all by row."""
    if k is None:
        return sorted(int(row) for row in found)
    rows = np.asarray(found)
    top = rows if len(rows) <= k else rows[np.argpartition(-score[rows], k - 1)[:k]]
    return [int(row) for row in top[np.argsort(-score[top], kind="stable")]]


def difference(ours: Answers, theirs: Answers) -> str:
    """Empty if the answers are the same, else where they first are not."""
    for event, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return f"differs at event {event}: {len(mine)} found by tidings, {len(other)} by the peer"
    return "" if theirs else "no answers"


@contextmanager
def told(what: str) -> Iterator[None]:
    """A line on the screen about what takes long."""
    print(f"  {what} ...", end="", flush=True)
    start = time.monotonic()
    yield
    print(f" {time.monotonic() - start:.0f} s", flush=True)
