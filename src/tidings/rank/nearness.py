"""Which subscriptions are nothing but an ideal point: they hear of every event, ranked by how near it lies, within a window.

Such a subscription has no filter, a window, and `by={"near": ..., "weights": ...}` with weights above 0 and no decay; it goes by
neither similarity nor an expiry of its own, and by no calendar, and counts every event (no `per`). No event can be excluded for it
by matching, and most can by their distance. One that began with a replay is `listed`: its list has events from before it, and is
kept as those of matches are.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Clause

LARGEST_K = 100_000


class IdealPoint(NamedTuple):
    """`attributes` as `by` names them, in its order, which is also the order in which distances are summed."""

    attributes: tuple[str, ...]
    centre: tuple[float, ...]
    weights: tuple[float, ...]


def ideal_point(subscription: Subscription) -> IdealPoint | None:
    """The point, if the subscription is nothing but one."""
    s = subscription
    if s.by is None:
        return None
    pure = s.clauses == (Clause(),) and s.window is not None and s.expires is None and s.similarity is None
    pure = pure and s.per is None and s.window is not None and s.window.calendar is None
    return point_of(s.by, s.k) if pure else None


def point_of(by: str | None, k: int | None) -> IdealPoint | None:
    """The ideal point that `by` names; None if it means anything else, or what an index of balls does not take."""
    if by is None or not by.lstrip().startswith("{") or (k is not None and k > LARGEST_K):
        return None
    spec = json.loads(by)
    if "near" not in spec or "decay" in spec or spec.get("listed") or any(isinstance(v, list) for v in spec["near"].values()):
        return None
    weights = tuple(float(spec.get("weights", {}).get(name, 1.0)) for name in spec["near"])
    if not all(weight > 0.0 for weight in weights):
        return None
    return IdealPoint(tuple(spec["near"]), tuple(float(value) for value in spec["near"].values()), weights)
