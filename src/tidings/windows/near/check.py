"""The lists of ideal points without their kernels: what the definition says of one, in plain Python, and a walk of invariants."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tidings.windows.memory import CLOCK, NEVER, NONE, NUMBER, STORED
from tidings.windows.near.memory import BLOCK, NearMemory

Names = Callable[[int], str]
"""The id of an event, by its handle."""


def distance_of(m: NearMemory, place: int, event: int) -> float:
    total = 0.0
    for x, c, w in zip(m.points[:, event], m.balls.centre[:, place], m.balls.weight[:, place], strict=True):
        total += float(w) * ((float(x) - float(c)) * (float(x) - float(c)))
    return math.sqrt(total)


def leaves_at(m: NearMemory, place: int, event: int) -> int:
    """The instant at which an event is no longer a candidate; a count window lets go of it by its number, too."""
    time, expires = int(m.events["time"][event]), int(m.events["expires"][event])
    duration = int(m.lists["duration"][place])
    return expires if duration == NEVER else min(expires, time + duration)


def all_live(m: NearMemory, place: int, now: int) -> list[tuple[int, float]]:
    """(event, distance) of every published event that is a candidate of the list at `now`, found without its view."""
    own, stored = m.lists[place], m.events[: m.meter[STORED]]
    live = (own["after"] < stored["number"]) & (stored["number"] <= m.meter[NUMBER]) & (stored["time"] > own["since"])
    if own["counted"] != NEVER:
        live &= stored["number"] > m.meter[NUMBER] - own["counted"]
    if own["duration"] != NEVER:
        live &= stored["time"] > max(now, -(2**61)) - own["duration"]
    live &= (stored["expires"] > now) & ~np.isnan(m.points[:, : len(stored)]).any(axis=0)
    return [(event, distance_of(m, place, event)) for event in np.flatnonzero(live).tolist()]


def check_near(m: NearMemory, places: set[int], id_of: Names) -> None:
    """Walk every invariant of `near_memory`; `places` are those in use."""
    views, fallen = np.zeros(len(m.mark), np.int64), np.zeros(len(m.fallen), np.int64)
    for place in range(len(m.lists)):
        own = m.lists[place]
        assert place in places or own["k"] == own["viewed"] == own["fallen_room"] == 0
        if own["k"] > 0:
            views[own["start"] : own["start"] + own["limit"] + 1] += 1
            fallen[own["fallen_start"] : own["fallen_start"] + own["fallen_room"]] += 1
            check_list(m, place, id_of)
        for due, first in ((m.instant_due, m.instant_first), (m.number_due, m.number_first)):
            assert first[place // BLOCK] <= due[place]
    assert views.max() <= 1, "two lists share a place"
    assert fallen.max() <= 1, "two lists share a place of fallen"


def check_list(m: NearMemory, place: int, id_of: Names) -> None:
    own = m.lists[place]
    view = range(int(own["start"]), int(own["start"] + own["viewed"]))
    assert own["viewed"] <= own["limit"]
    assert own["fallen"] <= own["fallen_room"]
    ranks = [rank_of(m, int(m.mark[at] >> 1), float(m.distance[at]), id_of) for at in view]
    assert ranks == sorted(ranks)
    for at in view[: len(view) if own["bounded"] else int(own["k"])]:
        number = NEVER if own["counted"] == NEVER else int(m.events["number"][m.mark[at] >> 1] + own["counted"])
        leaves = leaves_at(m, place, int(m.mark[at] >> 1))
        assert leaves == (m.leaves[at] if own["timed"] else NEVER)
        assert m.meter[CLOCK] < m.instant_due[place] <= leaves
        assert m.meter[NUMBER] < m.number_due[place] <= number
    assert all(m.mark[at] & 1 for at in view[: int(own["k"])])
    radius = np.inf if own["edge"] == NONE else float(own["edge_distance"])
    if own["bounded"]:
        assert own["edge"] == NONE
        radius = float(m.distance[view[-1]]) if own["viewed"] == own["limit"] else np.inf
    else:
        assert len(view) >= own["k"] or own["edge"] == NONE
        check_view(m, place, {int(m.mark[at] >> 1) for at in view}, id_of)
    assert m.balls.radius[place] == radius


def check_view(m: NearMemory, place: int, view: set[int], id_of: Names) -> None:
    """Every live event that ranks before the edge is in the view."""
    edge, edge_distance = int(m.lists["edge"][place]), float(m.lists["edge_distance"][place])
    for event, distance in all_live(m, place, int(m.meter[CLOCK])):
        beyond = edge != NONE and rank_of(m, event, distance, id_of) >= rank_of(m, edge, edge_distance, id_of)
        assert event in view or beyond


def rank_of(m: NearMemory, event: int, distance: float, id_of: Names) -> tuple[float, int, str, int]:
    return distance, int(m.events["time"][event]), id_of(event), int(m.events["number"][event])
