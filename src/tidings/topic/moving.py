"""Moving subscribers: a subscription's place, centred anew, its size kept; and "within so many metres of here"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidings.errors import EventError, SubscriptionError
from tidings.model.door.event import read_place
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Box, Clause
from tidings.model.filter.geodesy import circle_of, within
from tidings.model.values.schema import Place, Schema


def placed_within(schema: Schema, subscription: Subscription, point: Sequence[float], metres: float) -> Subscription:
    """The subscription, further restricted to places within `metres` of `point`."""
    if any(clause.box is not None for clause in subscription.clauses):
        raise SubscriptionError(
            f"subscription {subscription.id!r} has a box in its filter: within or a box on {schema.place!r}, not both"
        )
    circle = within(schema, (point[0], point[1]), metres)
    clauses = [
        replace(clause, box=part.box, residue=(*clause.residue, *part.residue))
        for clause in subscription.clauses
        for part in circle
    ]
    return subscription.with_clauses(tuple(clauses))


def _without_circle(subscription: Subscription) -> tuple[Subscription, float] | None:
    """The subscription before `placed_within`, and the metres; None if it is not of that kind."""
    radius, clauses = None, list[Clause]()
    for clause in subscription.clauses:
        if not clause.residue:
            return None
        circles = [residue for residue in clause.residue if circle_of(residue.source) is not None]
        if not circles:
            return None
        radius = circle_of(circles[0].source)
        rest = tuple(residue for residue in clause.residue if residue not in circles)
        base = replace(clause, box=None, residue=rest)
        clauses += [] if base in clauses else [base]
    return (subscription.with_clauses(tuple(clauses)), radius[2]) if radius is not None else None


def moved(schema: Schema, subscription: Subscription, point: Sequence[float]) -> Subscription:
    """The subscription with the middle of all its boxes, or of its circle, at `point`."""
    attribute = schema[schema.place] if schema.place is not None else None
    residues = [residue for clause in subscription.clauses for residue in clause.residue]
    round_a_point = _without_circle(subscription) if residues else None
    if round_a_point is not None and isinstance(attribute, Place):
        return placed_within(schema, round_a_point[0], _point(schema.place or "", point, attribute.plane), round_a_point[1])
    boxes = [clause.box for clause in subscription.clauses if clause.box is not None]
    if not isinstance(attribute, Place) or not boxes:
        raise SubscriptionError(f"subscription {subscription.id!r} has no place: only one with a box can be moved")
    if residues and any(schema.place in residue.attributes for residue in residues):
        raise SubscriptionError(
            f"subscription {subscription.id!r} has a shape other than a box on {schema.place!r}: give it a new filter"
        )
    x, y = _point(schema.place or "", point, attribute.plane)
    unwrapped = boxes if attribute.plane or len(boxes) == 1 else unwrap(boxes)
    west, south, east, north = boxes[0] if len(boxes) == 1 else around(unwrapped)
    dx, dy = x - (west + east) / 2, y - (south + north) / 2
    clauses: list[Clause] = []
    place = iter(unwrapped)
    for clause in subscription.clauses:
        if clause.box is None:
            clauses.append(clause)
            continue
        box = next(place)
        shifted = (box[0] + dx, box[1] + dy, box[2] + dx, box[3] + dy)
        clauses += [clause.placed(b) for b in ([shifted] if attribute.plane else wrap(shifted))]
    return subscription.with_clauses(tuple(clauses))


def around(boxes: Sequence[Box]) -> Box:
    """The least box that holds all."""
    west, south, east, north = boxes[0]
    for box in boxes[1:]:
        west, south, east, north = min(west, box[0]), min(south, box[1]), max(east, box[2]), max(north, box[3])
    return west, south, east, north


def _point(name: str, point: Sequence[float], plane: bool) -> tuple[float, float]:
    try:
        box = read_place(name, point, plane)
    except EventError as error:
        raise SubscriptionError(str(error)) from None
    if box[:2] != box[2:]:
        raise SubscriptionError(f"{name} = {point!r}: a subscription is moved to a point (x, y)")
    return box[0], box[1]


def unwrap(boxes: Sequence[Box]) -> list[Box]:
    """Boxes that meet at the 180th meridian, laid side by side: the western hemisphere's go on beyond 180."""
    crosses = any(b[2] == 180.0 for b in boxes) and any(b[0] == -180.0 for b in boxes)
    return [(b[0] + 360.0, b[1], b[2] + 360.0, b[3]) if crosses and b[0] == -180.0 else b for b in boxes]


def wrap(box: Box) -> list[Box]:
    """A box back on the globe: cut at the poles, and in two where it crosses the 180th meridian."""
    west, south, east, north = box[0], max(box[1], -90.0), box[2], min(box[3], 90.0)
    if east - west >= 360.0:
        return [(-180.0, south, 180.0, north)]
    turns = 360.0 if west < -180.0 else -360.0 if west >= 180.0 else 0.0
    west, east = west + turns, east + turns
    if east <= 180.0:
        return [(west, south, east, north)]
    return [(west, south, 180.0, north), (-180.0, south, east - 360.0, north)]
