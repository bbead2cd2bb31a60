"""What a subscription is ranked `by`, read once, at the door: an expression, or an object with an ideal point or an expression,
and perhaps a decay. `rank.relevance` makes a number of it, and its header tells what each form means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.errors import EventError, FilterError, SubscriptionError, shown
from tidings.model.door.single_values import read_place
from tidings.model.filter.operands import NumberExpression, compile_number
from tidings.model.values.limits import limited
from tidings.model.values.schema import Date, Number, Place, Schema, Time
from tidings.model.values.window import parse_window

FIELDS = ("by", "near", "weights", "decay", "listed")
LENGTH_LIMIT = 100_000
"""Most characters of `by`."""
_FORMS = "an expression as '-price' or an object as {'near': ...} is accepted"


@dataclass(frozen=True, slots=True)
class By:
    """Either `expression`, or `near`, which is (attribute, ideal value, weight) of each term, or `place`, an attribute and a point;
    `decay` in microseconds."""

    expression: NumberExpression | None
    near: tuple[tuple[str, float, float], ...] = ()
    decay: int | None = None
    place: tuple[str, tuple[float, float]] | None = None


def by_text(value: object) -> str:
    """`by` as it is kept: an expression is its text, an object its JSON."""
    if isinstance(value, Mapping):
        try:
            value = json.dumps(dict(value))
        except (TypeError, ValueError, RecursionError):
            raise SubscriptionError(f"by is {shown(value)}: {_FORMS}") from None
    if not isinstance(value, str):
        raise SubscriptionError(f"by is {shown(value)}: {_FORMS}")
    if len(value) > LENGTH_LIMIT and limited():
        raise SubscriptionError(f"by has {len(value)} characters: at most {LENGTH_LIMIT} are accepted")
    return value


def read_by(schema: Schema, by: str) -> By:
    """What `by` means; SubscriptionError if it means nothing."""
    if not by.lstrip().startswith("{"):
        return By(_expression(schema, "by", by))
    spec = _object(by)
    if ("near" in spec) == ("by" in spec):
        raise SubscriptionError(f"by is {shown(by)}: an object has either 'near' or 'by'")
    if not isinstance(spec.get("listed", True), bool):
        raise SubscriptionError(f"by.listed is {shown(spec['listed'])}: true or false is accepted")
    decay = _decay(spec["decay"]) if "decay" in spec else None
    if "by" in spec:
        return By(_expression(schema, "by.by", spec["by"]), (), decay)
    place = _place(schema, spec)
    return By(None, () if place is not None else _near(schema, spec), decay, place)


def listed(by: str) -> str:
    """`by`, an object, for a list that is kept as those of matches are."""
    return json.dumps({**_object(by), "listed": True})


def _object(by: str) -> dict[str, Any]:
    try:
        spec: dict[str, Any] = json.loads(by)
    except (ValueError, RecursionError) as error:
        raise SubscriptionError(f"by is {shown(by)}: {error}") from None
    for name in spec:
        if name not in FIELDS:
            raise SubscriptionError(f"by has the field {shown(name)}: {', '.join(FIELDS)} are accepted")
    return spec


def _expression(schema: Schema, field: str, text: object) -> NumberExpression:
    if not isinstance(text, str):
        raise SubscriptionError(f"{field} is {shown(text)}: an expression as '-price' is accepted")
    try:
        return compile_number(schema, text)
    except FilterError as error:
        raise SubscriptionError(f"{field} is {shown(text)}: {_FORMS} ({error})") from None


def _place(schema: Schema, spec: Mapping[str, Any]) -> tuple[str, tuple[float, float]] | None:
    """The point to which the nearest is the best, if that is what `near` names."""
    near = spec["near"]
    places = [name for name in near if isinstance(schema.get(name), Place)] if isinstance(near, Mapping) else []
    if not places:
        return None
    kind = schema[places[0]]
    if len(near) > 1 or "weights" in spec:
        raise SubscriptionError(f"by.near names the place {places[0]!r} and more: the distance to a place stands alone")
    assert isinstance(kind, Place)
    try:
        box = read_place("by.near", near[places[0]], kind.plane)
    except EventError as error:
        raise SubscriptionError(str(error)) from None
    if box[:2] != box[2:]:
        raise SubscriptionError(f"by.near.{places[0]} is {shown(near[places[0]])}: a point (x, y) is accepted")
    return places[0], (box[0], box[1])


def _near(schema: Schema, spec: Mapping[str, Any]) -> tuple[tuple[str, float, float], ...]:
    ideal = _numbers(schema, "near", spec["near"])
    weights = _numbers(schema, "weights", spec.get("weights", {}))
    if not ideal or any(weight < 0.0 for weight in weights.values()) or not weights.keys() <= ideal.keys():
        raise SubscriptionError(
            "by.near needs one attribute at least, and by.weights a number of 0 or more for attributes of by.near"
        )
    return tuple((name, value, weights.get(name, 1.0)) for name, value in ideal.items())


def _numbers(schema: Schema, field: str, given: object) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise SubscriptionError(f"by.{field} is {shown(given)}: an object of attributes and numbers is accepted")
    numbers: dict[str, float] = {}
    for name, value in given.items():
        if not isinstance(schema.get(name), Number | Time | Date):
            raise SubscriptionError(f"by.{field} names {shown(name)}: a Number, Time or Date attribute of this topic is accepted")
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
        try:
            numbers[name] = float(value) if number else math.nan
        except OverflowError:
            numbers[name] = math.nan
        if math.isnan(numbers[name]):
            raise SubscriptionError(f"by.{field}.{name} is {shown(value)}: a finite number is accepted")
    return numbers


def _decay(decay: object) -> int:
    length = parse_window(decay).duration
    if length is None:
        raise SubscriptionError(f"by.decay is {shown(decay)}: a duration as '1 day' is accepted")
    return length
