"""Values that are not one value: a range of a Number or Time, and several weighted values of a Number, Time or Category.

`Between(lo, hi)` meets every interval that it shares a point with ("20 to 30 hours"). `Uncertain({value: weight})` is one of its
values, with chances in proportion to the weights; an event with such values is a choice of *worlds*, each an event without them,
with its chance. Attributes are independent of each other.

Where a single number is needed (a score that depends on the attribute) a range counts as its middle; where a predicate cannot be
asked of a range (a residue, as `price < size`), the attribute counts as missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from tidings.errors import EventError, shown

WORLDS = 1024
"""Most worlds that one event may have."""


class Between:
    """From lo to hi, ends included.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()})
    >>> notes = deals.subscribe("ann", "price < 5")
    >>> [match.subscription for match in deals.match({"id": "e1", "price": td.Between(4, 8)})]
    ['ann']
    """

    __slots__ = ("hi", "lo")

    def __init__(self, lo: Any, hi: Any) -> None:
        self.lo, self.hi = lo, hi

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Between) and (self.lo, self.hi) == (other.lo, other.hi)

    def __hash__(self) -> int:
        return hash((self.lo, self.hi))

    def __repr__(self) -> str:
        return f"Between({self.lo!r}, {self.hi!r})"


class Uncertain:
    """One of these values; weights are positive numbers, and a chance is a weight's part of their sum.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"brand": td.Category()})
    >>> notes = deals.subscribe("ann", "brand = 'Acme'", score=2.0)
    >>> [match.score for match in deals.match({"id": "e1", "brand": td.Uncertain({"Acme": 1, "Beta": 3})})]
    [0.5]
    """

    __slots__ = ("weights",)

    def __init__(self, weights: Mapping[Any, float]) -> None:
        self.weights = weights

    def chances(self) -> list[tuple[Any, float]]:
        """Each value with its chance.

        >>> Uncertain({"Acme": 1, "Beta": 3}).chances()
        [('Acme', 0.25), ('Beta', 0.75)]
        """
        total = math.fsum(self.weights.values())
        return [(value, weight / total) for value, weight in self.weights.items()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Uncertain) and self.weights == other.weights

    def __hash__(self) -> int:
        return hash(tuple(self.weights.items()))

    def __repr__(self) -> str:
        return f"Uncertain({self.weights!r})"


def meets(lo: float, hi: float, value: Any) -> bool:
    """Whether a value, or some of a range, lies in [lo, hi]."""
    if value.__class__ is Between:
        return bool(lo <= value.hi and value.lo <= hi)
    return bool(lo <= value <= hi)


def ranged(values: Mapping[str, Any]) -> bool:
    return any(value.__class__ is Between for value in values.values())


def low_ends(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.lo if value.__class__ is Between else value for name, value in values.items()}


def middle(value: Any) -> Any:
    """What a range counts as in a score."""
    return value.lo / 2 + value.hi / 2 if value.__class__ is Between else value


def without_ranges(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """For predicates that no range can answer."""
    return {name: value for name, value in values.items() if value.__class__ is not Between} if ranged(values) else values


def worlds(values: Mapping[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
    """(chance, values) of each way the event may be; one, if it is certain."""
    open_names = [name for name, value in values.items() if value.__class__ is Uncertain]
    for chosen in product(*(values[name].chances() for name in open_names)):
        chance = 1.0
        for _, part in chosen:
            chance *= part
        yield chance, {**values, **{name: value for name, (value, _) in zip(open_names, chosen, strict=True)}}


def read_vague(name: str, value: object, read: Callable[[str, Any], Any], ranges: bool) -> Between | Uncertain | None:
    """A range or an uncertain value in any of its forms, its parts read by `read`; None if it is neither.

    A range is `Between`, two numbers in a list, or an object with `lo` and `hi`; an uncertain value is `Uncertain`, or an object
    with `values` and `weights`.
    """
    if isinstance(value, Mapping) and value.keys() == {"values", "weights"}:
        if not isinstance(value["values"], list | tuple) or not isinstance(value["weights"], list | tuple):
            raise EventError(f"{name} is {shown(value)}: values and weights are lists")
        if len(value["values"]) != len(value["weights"]) or len({*map(str, value["values"])}) != len(value["values"]):
            raise EventError(f"{name} is {shown(value)}: values are distinct, and each has a weight")
        value = Uncertain(dict(zip(value["values"], value["weights"], strict=True)))
    if isinstance(value, Uncertain):
        return _read_uncertain(name, value, read)
    if not ranges:
        return None
    if isinstance(value, Mapping) and value.keys() == {"lo", "hi"}:
        value = Between(value["lo"], value["hi"])
    if isinstance(value, list | tuple) and len(value) == 2:
        value = Between(*value)
    if not isinstance(value, Between):
        return None
    lo, hi = read(f"{name}.lo", value.lo), read(f"{name}.hi", value.hi)
    if lo is None or hi is None or lo > hi:
        raise EventError(f"{name} is {shown(value)}: a range has lo <= hi")
    return Between(lo, hi)


def _read_uncertain(name: str, value: Uncertain, read: Callable[[str, Any], Any]) -> Uncertain:
    weights = value.weights
    sound = isinstance(weights, Mapping) and len(weights) > 0
    for weight in weights.values() if sound else ():
        sound = sound and isinstance(weight, int | float) and not isinstance(weight, bool) and 0.0 < weight < math.inf
    if not sound or not math.isfinite(math.fsum(weights.values())):
        raise EventError(f"{name} is {shown(value)}: an uncertain value has at least one value, and each a weight above 0")
    made: dict[Any, float] = {}
    for one, weight in weights.items():
        known = read(name, one)
        made[known] = made.get(known, 0.0) + float(weight)
    return Uncertain(made)


def check_worlds(values: Mapping[str, Any]) -> None:
    ways = math.prod(len(value.weights) for value in values.values() if value.__class__ is Uncertain)
    if ways > WORLDS:
        raise EventError(f"the event's uncertain values make {ways} combinations: at most {WORLDS} are accepted")
