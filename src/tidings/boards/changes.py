"""Changes of objects' places in watchers' lists, as columns; one of them as an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Change(NamedTuple):
    """`why` is `entered`, `left` or `updated`. `rank` counts from 1; what has left has none, and its last `score` in the list."""

    subscription: str
    key: str
    score: float
    rank: int | None
    why: str


@dataclass(slots=True)
class Changes:
    """Equal lengths. By watcher, what left before what stands in the list, best first."""

    subscription: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    rank: list[int | None] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.key)

    def __iter__(self) -> Iterator[Change]:
        return map(Change, *self.columns)

    @property
    def columns(self) -> tuple[list[str], list[str], list[float], list[int | None], list[str]]:
        return self.subscription, self.key, self.score, self.rank, self.why

    def add(self, changes: Iterable[Change]) -> None:
        rows = list(changes)
        self.subscription += [change.subscription for change in rows]
        self.key += [change.key for change in rows]
        self.score += [change.score for change in rows]
        self.rank += [change.rank for change in rows]
        self.why += [change.why for change in rows]
