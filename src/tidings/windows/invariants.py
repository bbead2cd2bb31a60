"""A walk of every invariant of `memory`, in plain Python, and what the definition says of a list around an ideal point."""

from __future__ import annotations

import math

import numpy as np

from tidings.windows.memory import BLOCK, CLOCK, NEVER, NONE, NUMBER, STORED, Memory
from tidings.windows.near.points import Points

Rank = tuple[float, int, bytes, int]


def check_lists(m: Memory, near: Points | None, taken: set[int]) -> None:
    """`taken` are the rows in use."""
    views, spare = np.zeros(len(m.mark), np.int64), np.zeros(len(m.spare_mark), np.int64)
    assert (np.diff(m.events["number"][: m.meter[STORED]]) > 0).all()
    for row in range(len(m.lists)):
        own = m.lists[row]
        assert row in taken or own["k"] == own["viewed"] == own["spare"] == 0
        assert 0 <= own["viewed"] <= max(own["room"], 0)
        assert 0 <= own["spare"] <= own["spare_room"]
        views[own["start"] : own["start"] + own["room"]] += 1
        spare[own["spare_start"] : own["spare_start"] + own["spare_room"]] += 1
        if own["k"] > 0:
            check_list(m, near, row)
        for due, first in ((m.instant_due, m.instant_first), (m.number_due, m.number_first)):
            assert first[row // BLOCK] <= due[row]
    assert views.max() <= 1, "two lists share a place"
    assert spare.max() <= 1, "two lists share a place of spare"


def check_list(m: Memory, near: Points | None, row: int) -> None:
    own = m.lists[row]
    view = range(int(own["start"]), int(own["start"] + own["viewed"]))
    assert own["viewed"] <= own["limit"]
    ranks = [rank_of(m, int(m.mark[at] >> 1), float(m.cost[at])) for at in view]
    assert ranks == sorted(ranks)
    for at in view[: len(view) if own["bounded"] else int(own["k"])]:
        event = int(m.mark[at] >> 1)
        number = NEVER if own["counted"] == NEVER else int(m.events["number"][event] + own["counted"])
        leaves = leaves_at(m, row, event)
        assert leaves == (m.leaves[at] if own["timed"] else NEVER)
        assert m.meter[CLOCK] < m.instant_due[row] <= leaves
        assert m.meter[NUMBER] < m.number_due[row] <= number
    assert all(m.mark[at] & 1 for at in view[: int(own["k"])])
    assert own["edge"] == NONE or not own["bounded"]
    assert own["edge"] == NONE or len(view) >= own["k"]
    assert own["edge"] != NONE or (near is not None and not own["bounded"]) or own["spare"] == 0 or own["per"]
    groups = [group for group in m.group[view.start : view.stop].tolist() if own["per"] and group]
    assert len(groups) == len(set(groups)), "two of a group in one view"
    if near is None:
        check_spare(m, row)
    else:
        check_ball(m, near, row)


def check_spare(m: Memory, row: int) -> None:
    """Of a list of matches: whatever ranks before the edge is in the view, or a better one of its group is."""
    own, better = m.lists[row], dict[int, Rank]()
    for at in range(int(own["start"]), int(own["start"] + own["viewed"])):
        if own["per"]:
            better[int(m.group[at])] = rank_of(m, int(m.mark[at] >> 1), float(m.cost[at]))
    better.pop(0, None)
    for at in range(int(own["spare_start"]), int(own["spare_start"] + own["spare"])):
        rank = rank_of(m, int(m.spare_mark[at] >> 1), float(m.spare_cost[at]))
        if not own["per"] or better.get(int(m.spare_group[at]), (np.inf,)) >= rank:
            assert own["edge"] != NONE
            assert rank >= rank_of(m, int(own["edge"]), float(own["edge_cost"]))


def check_ball(m: Memory, near: Points, row: int) -> None:
    """Around an ideal point: every live event that ranks before the edge is in the view, and the radius reaches it."""
    own = m.lists[row]
    edge, edge_cost = int(own["edge"]), float(own["edge_cost"])
    radius = np.inf if edge == NONE else edge_cost
    view = set((m.mark[own["start"] : own["start"] + own["viewed"]] >> 1).tolist())
    if own["bounded"]:
        radius = float(m.cost[own["start"] + own["viewed"] - 1]) if own["viewed"] == own["limit"] else np.inf
    else:
        for event, distance in all_live(m, near, row, int(m.meter[CLOCK])):
            beyond = edge != NONE and rank_of(m, event, distance) >= rank_of(m, edge, edge_cost)
            assert event in view or beyond
    assert near.balls.radius[row] == radius


def rank_of(m: Memory, event: int, cost: float) -> Rank:
    time, number, start, end = (int(m.events[name][event]) for name in ("time", "number", "id_start", "id_end"))
    return cost, time, m.id_bytes[start:end].tobytes(), number


def leaves_at(m: Memory, row: int, event: int) -> int:
    """The instant at which an event is no longer a candidate; a count window lets go of it by its number, too."""
    time, expires = int(m.events["time"][event]), int(m.events["expires"][event])
    duration = int(m.lists["duration"][row])
    if duration < 0:
        periods: list[int] = m.period[m.calendar[-1 - duration] : m.calendar[-duration]].tolist()
        return min(expires, next(start for start in periods if start > time))
    return expires if duration == NEVER else min(expires, time + duration)


def all_live(m: Memory, near: Points, row: int, now: int) -> list[tuple[int, float]]:
    """(event, distance) of every published event that is a candidate of the list at `now`, found without its view."""
    own, stored = m.lists[row], m.events[: m.meter[STORED]]
    live = (own["after"] < stored["number"]) & (stored["number"] <= m.meter[NUMBER]) & (stored["time"] > own["since"])
    if own["counted"] != NEVER:
        live &= stored["number"] > m.meter[NUMBER] - own["counted"]
    if own["duration"] != NEVER:
        live &= stored["time"] > max(now, -(2**61)) - own["duration"]
    live &= (stored["expires"] > now) & ~np.isnan(near.points[:, : len(stored)]).any(axis=0)
    distances = ((event, plain_distance(near, row, event)) for event in np.flatnonzero(live).tolist())
    return [(event, distance) for event, distance in distances if distance < math.inf]


def plain_distance(near: Points, row: int, event: int) -> float:
    total = 0.0
    for x, c, w in zip(near.points[:, event], near.balls.centre[:, row], near.balls.weight[:, row], strict=True):
        total += float(w) * ((float(x) - float(c)) * (float(x) - float(c)))
    return math.sqrt(total)
