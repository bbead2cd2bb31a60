"""Changes of objects' places in watchers' lists, as columns; one of them as an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.boards.lists import WHY


class Change(NamedTuple):
    """`why` is `entered`, `left` or `updated`. `rank` counts from 1; what has left has none, and its last `score` in the list."""

    subscription: str
    key: str
    score: float
    rank: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Equal lengths. `rank` 0 is none, `why` a place in `lists.WHY`."""

    subscription: list[str]
    key: list[str]
    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    why: NDArray[np.int8]

    def __iter__(self) -> Iterator[Change]:
        ranks = [rank or None for rank in self.rank.tolist()]
        return map(Change, self.subscription, self.key, self.score.tolist(), ranks, map(WHY.__getitem__, self.why.tolist()))


@dataclass(slots=True)
class Changes:
    """In parts; in each, by watcher, what left before what stands in the list, best first."""

    parts: list[Columns] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(part.key) for part in self.parts)

    def __iter__(self) -> Iterator[Change]:
        for part in self.parts:
            yield from part

    def add(self, changes: Iterable[Change]) -> None:
        rows = list(changes)
        if rows:
            score, rank = np.array([change.score for change in rows]), np.array([change.rank or 0 for change in rows], np.int64)
            why = np.array([WHY.index(change.why) for change in rows], np.int8)
            names = [change.subscription for change in rows], [change.key for change in rows]
            self.parts.append(Columns(*names, score, rank, why))
