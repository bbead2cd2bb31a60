"""A change of one object's place in one watcher's list, and the net of many."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Change(NamedTuple):
    """`why` is `entered`, `left` or `updated`. `rank` counts from 1; what has left has none, and its last `score` in the list."""

    subscription: str
    key: str
    score: float
    rank: int | None
    why: str


def changes_of(
    rows: NDArray[np.int32],
    changed: Set[int],
    name: Callable[[int], str],
    key: Callable[[int], str],
    old_score: Callable[[int], float],
    top: Callable[[int], list[tuple[int, float]]],
) -> list[Change]:
    """The net of rows (watcher, object, was, is) in order: by watcher, what left before what stands in the list, best first.

    An object that was and is in the list is `updated` if it is among the `changed`, else nothing has happened to it."""
    first: dict[tuple[int, int], bool] = {}
    last: dict[tuple[int, int], bool] = {}
    for watcher, number, was, present in rows.tolist():
        first.setdefault((watcher, number), bool(was))
        last[watcher, number] = bool(present)
    by_watcher: dict[int, dict[int, tuple[bool, bool]]] = {}
    for (watcher, number), was in first.items():
        by_watcher.setdefault(watcher, {})[number] = was, last[watcher, number]
    changes: list[Change] = []
    for watcher, objects in by_watcher.items():
        changes += [
            Change(name(watcher), key(number), old_score(number), None, "left")
            for number, (was, present) in objects.items()
            if was and not present
        ]
        for rank, (number, score) in enumerate(top(watcher), 1):
            was, present = objects.get(number, (True, True))
            if not was:
                changes.append(Change(name(watcher), key(number), score, rank, "entered"))
            elif number in objects and number in changed:
                changes.append(Change(name(watcher), key(number), score, rank, "updated"))
    return changes
