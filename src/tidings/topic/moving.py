"""Moving subscribers: a subscription's place, centred anew, its size kept; and "within so many metres of here".

A box keeps its size wherever it goes: at a pole it reaches beyond 90 degrees, where no event is, and one that crosses the 180th
meridian is two boxes there and one again elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidings.errors import EventError, FilterError, SubscriptionError, shown
from tidings.model.door.single_values import read_place
from tidings.model.door.subscription import Circle, Subscription, changed
from tidings.model.filter.clause import Box, Clause
from tidings.model.filter.geodesy import DWITHIN, circle_of, read_metres, within
from tidings.model.values.schema import Place, Schema


def placed_within(schema: Schema, subscription: Subscription, given: object) -> Subscription:
    """The subscription, further restricted to places within so many metres of a point: `given` is ((x, y), metres)."""
    point, metres = _circle(schema, given)
    if any(clause.box is not None for clause in subscription.clauses):
        raise SubscriptionError(
            f"subscription {subscription.id!r} has a box in its filter: within or a box on {schema.place!r}, not both"
        )
    circle = within(schema, point, metres)
    clauses = [
        replace(clause, box=part.box, residue=(*clause.residue, *part.residue))
        for clause in subscription.clauses
        for part in circle
    ]
    return subscription.placed(tuple(clauses), (point, metres))


def changed_in_place(schema: Schema, before: Subscription, changes: Mapping[str, object]) -> Subscription:
    """The subscription with these parts set anew: a new filter keeps the circle, a new circle keeps the filter."""
    given = dict(changes)
    circle = given.pop("within", before.within)
    if "filter" not in changes and "within" not in changes:
        return changed(schema, before, given)
    bare = _without_circle(before)
    of_filter = before.within is None and DWITHIN in (before.filter or "").lower()
    if bare is not None and before.within is None and "within" not in changes and not of_filter:
        circle = bare[1]
    after = changed(schema, before if bare is None else bare[0], given)
    return after if circle is None else placed_within(schema, after, circle)


def _circle(schema: Schema, given: object) -> tuple[tuple[float, float], float]:
    attribute = schema[schema.place] if schema.place is not None else None
    if not isinstance(attribute, Place):
        raise SubscriptionError("the topic has no Place attribute to be near to")
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise SubscriptionError(f"within is {shown(given)}: ((x, y), metres) or ((x, y), '500 m') is accepted")
    try:
        metres = read_metres("within", given[1], attribute.plane)
    except FilterError as error:
        raise SubscriptionError(str(error)) from None
    return _point("within", given[0], attribute.plane), metres


def _without_circle(subscription: Subscription) -> tuple[Subscription, Circle] | None:
    """The subscription before `placed_within`, and the circle; None if it is not of that kind."""
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
    return (subscription.placed(tuple(clauses), None), radius[1:]) if radius is not None else None


def moved(schema: Schema, subscription: Subscription, point: Sequence[float]) -> Subscription:
    """The subscription with the middle of all its boxes, or of its circle, at `point`."""
    attribute = schema[schema.place] if schema.place is not None else None
    residues = [residue for clause in subscription.clauses for residue in clause.residue]
    round_a_point = _without_circle(subscription) if residues else None
    if round_a_point is not None and isinstance(attribute, Place):
        return placed_within(schema, round_a_point[0], (_point(schema.place or "", point, attribute.plane), round_a_point[1][1]))
    placed = [clause for clause in subscription.clauses if clause.box is not None]
    if not isinstance(attribute, Place) or not placed:
        raise SubscriptionError(f"subscription {subscription.id!r} has no place: only one with a box can be moved")
    if residues and any(schema.place in residue.attributes for residue in residues):
        raise SubscriptionError(
            f"subscription {subscription.id!r} has a shape other than a box on {schema.place!r}: give it a new filter"
        )
    x, y = _point(schema.place or "", point, attribute.plane)
    clauses = [] if len(placed) == len(subscription.clauses) else [clause for clause in subscription.clauses if clause.box is None]
    unwrapped = placed if attribute.plane or len(placed) == 1 else unwrap(placed)
    boxes = [clause.box for clause in unwrapped if clause.box is not None]
    west, south, east, north = around(boxes)
    dx, dy = x - (west + east) / 2, y - (south + north) / 2
    for clause, box in zip(unwrapped, boxes, strict=True):
        shifted = (box[0] + dx, box[1] + dy, box[2] + dx, box[3] + dy)
        clauses += [clause.placed(part) for part in ([shifted] if attribute.plane else wrap(shifted))]
    return subscription.placed(tuple(clauses), None, (x, y))


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
        raise SubscriptionError(f"{name} is {shown(point)}: a subscription is moved to a point (x, y)")
    return box[0], box[1]


def unwrap(clauses: Sequence[Clause]) -> list[Clause]:
    """Clauses whose boxes meet at the 180th meridian, laid side by side: the western hemisphere's go on beyond 180, and the two
    parts of one box are one."""
    boxes = [clause.box for clause in clauses if clause.box is not None]
    if not any(box[2] == 180.0 for box in boxes) or not any(box[0] == -180.0 for box in boxes):
        return list(clauses)
    whole: list[Clause] = []
    for clause, box in zip(clauses, boxes, strict=True):
        whole.append(clause if box[0] != -180.0 else clause.placed((box[0] + 360.0, box[1], box[2] + 360.0, box[3])))
    for east in [clause for clause in whole if clause.box is not None and clause.box[0] == 180.0]:
        for place, west in enumerate(whole):
            joined = _joined(west, east)
            if joined is not None:
                whole[place] = joined
                whole.remove(east)
                break
    return whole


def _joined(west: Clause, east: Clause) -> Clause | None:
    """Two parts of one box as one."""
    a, b = west.box, east.box
    if a is None or b is None or a[2] != b[0] or (a[1], a[3]) != (b[1], b[3]) or west.placed(b) != east:
        return None
    return west.placed((a[0], a[1], b[2], a[3]))


def wrap(box: Box) -> list[Box]:
    """A box back on the globe: in two where it crosses the 180th meridian."""
    west, south, east, north = box
    if east - west >= 360.0:
        return [(-180.0, south, 180.0, north)]
    turns = 360.0 if west < -180.0 else -360.0 if west >= 180.0 else 0.0
    west, east = west + turns, east + turns
    if east <= 180.0:
        return [(west, south, east, north)]
    return [(west, south, 180.0, north), (-180.0, south, east - 360.0, north)]
