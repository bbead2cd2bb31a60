"""Subscriptions at the door: from Python arguments or JSON to `Subscription`.

Whatever cannot be accepted raises SubscriptionError: one sentence with the field, the value and what is accepted. A filter that no
event can satisfy is accepted with a NeverMatchesWarning and has no clauses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tidings.errors import EventError, FilterError, SubscriptionError, shown
from tidings.model.door.by import by_text, read_by
from tidings.model.door.event import parse_json
from tidings.model.door.single_values import read_id, read_name, read_number, read_time
from tidings.model.filter.clause import Clause, Values
from tidings.model.filter.compile import compile_filter
from tidings.model.filter.linear import Linear, parse_linear
from tidings.model.filter.syntax import too_deep
from tidings.model.values.calendar import read_zone
from tidings.model.values.limits import TEXT_LIMIT, limited, recovering
from tidings.model.values.pace import APART, read_budget, read_digest, read_length
from tidings.model.values.schema import Bool, Category, Date, Number, Schema, Time
from tidings.model.values.window import Window, parse_window

LARGEST_K = 2**31 - 1
Circle = tuple[tuple[float, float], float]
"""A point, and metres (units of a plane) around it."""


@dataclass(frozen=True, repr=False)
class Subscription:
    """`filter` is the source as it was given (CQL2 text or JSON), None if the clauses came as columns; `similarity` (alpha, theta).

    The score of a match is `score`, plus `terms` (coefficient by attribute) for a score that depends on the event; `score_source`
    is then its text. `k` None lets every match through; `by` is the relevance, None the score; `error` is the probability sigma
    that the bounded queue may err, None exact. `expires` and `since`, when a topic took it in, are in microseconds since
    1970-01-01 UTC. `owner` and `tags` (ascending, each once) are whose it is and what it is filed under: matching asks neither.

    `per` names an attribute, or `id`: of the events with one value of it only the best counts. `tz` is the time zone of what goes
    by the calendar, None for UTC. `budget`, `cooldown`, `dwell` and `digest` are its pace (`values.pace`), as texts.

    `within` is the circle ((x, y), metres) that the place must lie in beside what the filter says, and `centre` is where the boxes
    of the filter were last moved to; with either the clauses are not those of `filter` alone.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()})
    >>> notes = deals.subscribe("ann", "price < 5", k=3, window="1 day", owner="u17", time=0)
    >>> one = deals.subscription("ann")
    >>> one.filter, one.k, str(one.window), one.owner
    ('price < 5', 3, '1 d', 'u17')
    """

    id: str
    clauses: tuple[Clause, ...]
    filter: str | None = None
    score: float = 1.0
    terms: Mapping[str, float] = field(default_factory=dict)
    score_source: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    similarity: tuple[float, float] | None = None
    k: int | None = None
    window: Window | None = None
    by: str | None = None
    expires: int | None = None
    owner: str | None = None
    error: float | None = None
    since: int | None = None
    tags: tuple[str, ...] = ()
    within: Circle | None = None
    centre: tuple[float, float] | None = None
    per: str | None = None
    tz: str | None = None
    budget: str | None = None
    cooldown: str | None = None
    dwell: str | None = None
    digest: str | None = None

    def __repr__(self) -> str:
        """What was said, without what was compiled of it."""
        said = {name: getattr(self, name) for name in (*_READERS, "within", "centre")}
        said |= {"score": self.score_source or (self.score if self.score != 1.0 else None)}
        said |= {"window": None if self.window is None else str(self.window)}
        parts = [f"{name}={value!r}" for name, value in said.items() if value not in (None, {}, ())]
        return f"Subscription({', '.join([repr(self.id), repr(self.filter), *parts])})"

    @property
    def is_ranked(self) -> bool:
        """Whether a list of its own decides what it hears."""
        return self.k is not None or self.window is not None or self.digest is not None

    @property
    def listed(self) -> int | None:
        """The k of its list: a digest takes its k best from all."""
        return None if self.digest is not None else self.k

    @property
    def paced(self) -> bool:
        """Whether it is not told everything at once."""
        return self.budget is not None or self.cooldown is not None or self.dwell is not None or self.digest is not None

    def is_live(self, time: int) -> bool:
        return self.expires is None or time < self.expires

    def but(self, **fields: Any) -> Subscription:
        """The same with these fields: `dataclasses.replace` in a tenth of its time, since every change comes through here."""
        assert fields.keys() <= self.__dict__.keys(), fields
        other = object.__new__(Subscription)
        object.__setattr__(other, "__dict__", {**self.__dict__, **fields})
        return other

    def placed(self, clauses: tuple[Clause, ...], within: Circle | None, centre: tuple[float, float] | None = None) -> Subscription:
        """The same with these clauses, in another place."""
        return self.but(clauses=clauses, within=within, centre=centre)

    @property
    def says_all(self) -> bool:
        """Whether the clauses are those of the filter."""
        return self.filter is not None and self.within is None and self.centre is None

    def score_of(self, values: Values) -> float:
        """NaN when the event has no score: it lacks an attribute, or the answer is not finite. There is no match then."""
        return Linear(self.score, self.terms)(values)


BLANK: Final = Subscription("", ())
"""What a subscription is that says nothing."""


def known_id(value: object) -> str:
    """The id of a subscription that may be there, in the form that `make_subscription` gives it."""
    if isinstance(value, str) and value and value.isascii():
        return value
    try:
        with recovering():
            return read_id("id", value)
    except EventError as error:
        raise SubscriptionError(str(error)) from None


def make_subscription(schema: Schema, id: object, filter: object = None, /, **ranking: object) -> Subscription:
    """A subscription from Python arguments; `filter` None matches every event."""
    try:
        name = read_id("id", id)
    except EventError as error:
        raise SubscriptionError(str(error)) from None
    source, clauses = read_filter(schema, filter)
    return together(BLANK.but(id=name, clauses=clauses, filter=source, **read_ranking(schema, ranking)))


def read_subscription(schema: Schema, source: object) -> Subscription:
    """A subscription from a mapping or its JSON: `{"id": "ann", "filter": "price < 500", "k": 5}`."""
    if isinstance(source, str | bytes | bytearray):
        try:
            source = parse_json(source)
        except EventError as error:
            raise SubscriptionError(str(error)) from None
    if not isinstance(source, Mapping):
        raise SubscriptionError(f"subscription {shown(source)} ({type(source).__name__}): an object with id and filter is accepted")
    fields = dict(source)
    return make_subscription(schema, fields.pop("id", None), fields.pop("filter", None), **fields)


def read_ranking(schema: Schema, ranking: Mapping[str, object]) -> dict[str, Any]:
    """The fields of `Subscription` that `ranking` sets, validated; None leaves a field at its default."""
    fields: dict[str, Any] = {}
    for name, value in ranking.items():
        reader = _READERS.get(name)
        if reader is None:
            known = ", ".join(["id", "filter", *_READERS])
            raise SubscriptionError(f"field {shown(name)} (with value {shown(value)}) is unknown: a subscription has {known}")
        if value is not None:
            try:
                fields |= reader(schema, value)
            except EventError as error:
                raise SubscriptionError(str(error)) from None
    return fields


def changed(schema: Schema, subscription: Subscription, changes: Mapping[str, object]) -> Subscription:
    """The subscription with these fields set anew; None puts a field back to its default."""
    fields = dict(changes)
    if "id" in fields:
        raise SubscriptionError(
            f"id is {shown(fields['id'])}: a subscription keeps its id {subscription.id!r}; subscribe under the new one"
        )
    replaced: dict[str, Any] = {}
    if "filter" in fields:
        replaced["filter"], replaced["clauses"] = read_filter(schema, fields.pop("filter"))
        replaced["centre"] = None
    ranking = read_ranking(schema, fields)
    replaced |= {name: getattr(BLANK, name) for name, value in fields.items() if value is None}
    if "score" in fields and fields["score"] is None:
        replaced |= {"terms": {}, "score_source": None}
    return together(subscription.but(**replaced, **ranking))


def together(subscription: Subscription) -> Subscription:
    """The subscription, if its parts go together."""
    if subscription.per is not None and subscription.error is not None:
        raise SubscriptionError(f"per is {subscription.per!r} and error {subscription.error}: a list of one per value is exact")
    if subscription.digest is not None:
        for name in APART:
            if getattr(subscription, name) is not None:
                raise SubscriptionError(
                    f"digest is {subscription.digest!r} beside a {name}: a digest is the best of its own period"
                )
    return subscription


def read_filter(schema: Schema, filter: object) -> tuple[str | None, tuple[Clause, ...]]:
    if filter is None:
        return None, (Clause(),)
    if filter.__class__ is not str and not isinstance(filter, str | Mapping):
        raise SubscriptionError(f"filter is {shown(filter)}: CQL2 as text or as a JSON object is accepted")
    source = filter if isinstance(filter, str) else _written(filter)
    return source, tuple(compile_filter(schema, filter))


def _written(filter: Mapping[str, Any]) -> str:
    """The JSON that a dict is kept as; by its length it is measured, as texts are."""
    try:
        source = json.dumps(dict(filter), check_circular=False, allow_nan=not limited())
    except RecursionError:
        too_deep()
    except (TypeError, ValueError) as error:
        raise FilterError(f"the filter {shown(filter)} is not CQL2 JSON: {error}") from None
    if len(source) > TEXT_LIMIT and limited():
        raise FilterError(f"the filter has {len(source)} characters as JSON: at most {TEXT_LIMIT} are accepted")
    return source


def _score(schema: Schema, value: object) -> dict[str, Any]:
    if not isinstance(value, str):
        return {"score": read_bounded("score", value), "terms": {}, "score_source": None}
    linear = parse_linear(schema, "score", value)
    return {"score": linear.base, "terms": linear.coefficients, "score_source": value if linear.coefficients else None}


def _weights(schema: Schema, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise SubscriptionError(f"weights is {shown(value)}: an object with a number of 0 or more for each attribute is accepted")
    for name in value:
        if name not in schema:
            raise SubscriptionError(f"weights names {shown(name)}: the attributes of this topic are {', '.join(schema)}")
    return {"weights": {name: read_bounded(f"weights.{name}", weight, 0.0) for name, weight in value.items()}}


def _similarity(schema: Schema, value: object) -> dict[str, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise SubscriptionError(f"similarity is {shown(value)}: (alpha, theta), two numbers from 0 to 1, is accepted")
    return {
        "similarity": (read_bounded("similarity.alpha", value[0], 0.0, 1.0), read_bounded("similarity.theta", value[1], 0.0, 1.0))
    }


def read_k(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= LARGEST_K:
        raise SubscriptionError(f"k is {shown(value)}: a whole number from 0 to {LARGEST_K} is accepted")
    return int(value)


def _by(schema: Schema, value: object) -> dict[str, Any]:
    text = by_text(value)
    read_by(schema, text)
    return {"by": text}


def read_tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        raise SubscriptionError(f"tags is {shown(value)}: a list of strings is accepted")
    return tuple(sorted({read_id("tags", tag) for tag in value}))


def read_per(schema: Schema, value: object) -> str:
    kinds = (Category, Number, Bool, Time, Date)
    if not isinstance(value, str) or (value != "id" and not isinstance(schema.get(value), kinds)):
        raise SubscriptionError(
            f"per is {shown(value)}: a Category, Number, Bool, Time or Date attribute, or 'id' for the event itself, is accepted"
        )
    return value


def _error(schema: Schema, value: object) -> dict[str, Any]:
    sigma = read_bounded("error", value, 0.0, 1.0)
    if sigma in (0.0, 1.0):
        raise SubscriptionError(f"error is {shown(value)}: a number above 0 and below 1 is accepted")
    return {"error": sigma}


def read_bounded(name: str, value: object, lo: float = -math.inf, hi: float = math.inf) -> float:
    try:
        number = read_number(name, value)
    except EventError:
        number = math.nan
    if not lo <= number <= hi:
        least = "a finite number" if lo == -math.inf else f"a finite number of {lo:g} or more"
        accepted = least if hi == math.inf else f"a number from {lo:g} to {hi:g}"
        raise SubscriptionError(f"{name} is {shown(value)}: {accepted} is accepted")
    return number


_READERS: dict[str, Callable[[Schema, object], dict[str, Any]]] = {
    "score": _score,
    "weights": _weights,
    "similarity": _similarity,
    "k": lambda schema, value: {"k": read_k(value)},
    "window": lambda schema, value: {"window": parse_window(value)},
    "by": _by,
    "expires": lambda schema, value: {"expires": read_time("expires", value)},
    "owner": lambda schema, value: {"owner": read_name("owner", value)},
    "tags": lambda schema, value: {"tags": read_tags(value)},
    "error": _error,
    "per": lambda schema, value: {"per": read_per(schema, value)},
    "tz": lambda schema, value: {"tz": read_zone(value)},
    "budget": lambda schema, value: {"budget": read_budget(value)},
    "cooldown": lambda schema, value: {"cooldown": read_length("cooldown", value)},
    "dwell": lambda schema, value: {"dwell": read_length("dwell", value)},
    "digest": lambda schema, value: {"digest": read_digest(value)},
}
