"""Whatever comes to the door is taken or refused by an error of `tidings.errors`, and what is taken is read back the same."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drawing import at_most
from tidings import Bool, Category, Date, Number, Place, Schema, Time, Words
from tidings.errors import NeverMatchesWarning, TidingsError
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscription_at, subscriptions_from_arrow
from tidings.model.columns.tables import events_from_arrow
from tidings.model.door.event import Event, EventReader, read_events
from tidings.model.door.event_record import event_from_record, event_to_record
from tidings.model.door.subscription import make_subscription, read_subscription
from tidings.model.door.subscription_record import from_record, to_record
from tidings.model.filter.clause import Clause
from tidings.rank.relevance import relevance_of

SCHEMA = Schema(
    {
        "price": Number(),
        "brand": Category(),
        "made": Time(),
        "day": Date(),
        "sold": Bool(),
        "place": Place(),
        "area": Place(plane=True, shapes=True),
        "about": Words(),
    }
)
TEXTS = st.sampled_from(
    [
        *("", "a", "price", "-price", "price / 0", "price < 5", "brand LIKE '%a_b%'", "day = DATE('2026-01-31')", "sold = TRUE"),
        *("2026-01-31", "2026-01-31t10:00:00z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59", "+10:60", "1 day"),
        *('{"near": {"price": 5}}', '{"by": {', "[" * 2000, "(" * 2000, "\ud800", "\0", "a\x1fb", "ſ", "1e400", "NaN", "Feature"),
        "S_INTERSECTS(place, BBOX(0, 0, 1, 1)) AND NOT S_WITHIN(area, POLYGON((0 0, 1 0, 0 1, 0 0)))",
    ]
) | st.text(max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53, 2**63, 10**400, -(10**4000), 1e308, -0.0, 5e-324, math.nan, math.inf, -math.inf])
    | st.floats()
    | TEXTS
    | st.sampled_from([Decimal("1e999"), Decimal("NaN"), date(2026, 1, 31), datetime(1, 1, 1), datetime.max.replace(tzinfo=UTC)])
    | st.sampled_from([np.float32(1.5), np.int64(7), np.bool_(True), np.array([1.0, 2.0]), b"\x01\x00", object, {1, 2}])
)
NAMES = st.sampled_from(
    [
        *SCHEMA,
        *("id", "time", "expires", "type", "geometry", "properties", "coordinates", "specversion", "data", "deleted", "sku"),
        *("op", "args", "property", "near", "weights", "by", "decay", "lo", "hi", "values", "x", "y", "interval", "bbox"),
    ]
)
OPERATORS = st.sampled_from(
    [
        "and",
        "or",
        "not",
        "=",
        "<>",
        "<",
        "between",
        "in",
        "like",
        "isNull",
        "+",
        "/",
        "s_intersects",
        "t_during",
        "a_contains",
        "casei",
    ]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(NAMES | TEXTS, inner, max_size=5)
        | st.fixed_dictionaries({"op": OPERATORS, "args": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"type": st.sampled_from(["Point", "Polygon", "Feature"]), "coordinates": inner})
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(["score", "weights", "similarity", "k", "window", "by", "expires", "owner", "tags", "error"])
COLUMNS = st.sampled_from(
    [
        *SCHEMA,
        *("id", "time", "expires", "deleted", "score", "k", "window", "by", "owner", "filter", "error", "similarity"),
        *("price.lo", "made.hi", "brand.in", "place.box", "about.all", "about.any", "day.lo", "sold.is", "price.weight"),
    ]
)
TYPES = st.sampled_from(
    [
        *(
            pa.string(),
            pa.large_string(),
            pa.float64(),
            pa.int64(),
            pa.uint64(),
            pa.bool_(),
            pa.date32(),
            pa.timestamp("ns"),
            pa.null(),
        ),
        *(
            pa.list_(pa.string()),
            pa.list_(pa.float64()),
            pa.list_(pa.float64(), 4),
            pa.binary(),
            pa.duration("s"),
            pa.decimal128(9, 2),
        ),
        *(pa.dictionary(pa.int8(), pa.string()), pa.struct([("x", pa.float64()), ("y", pa.float64())])),
    ]
)


def events(source: Any) -> None:
    for read in (EventReader(SCHEMA), EventReader(SCHEMA, "sku")):
        event = tried(lambda read=read: read(source))
        if isinstance(event, Event) and not event.vague:
            assert event_from_record(SCHEMA, json.loads(json.dumps(event_to_record(event)))) == event
            for by in ("price / price", '{"near": {"price": 5}, "decay": "1 day"}'):
                relevance_of(SCHEMA, by)(event.values, 0)
    tried(lambda: read_events(SCHEMA, source))


def subscriptions(drawn: tuple[Any, Any, dict[str, Any]]) -> None:
    id, filter, ranking = drawn
    tried(lambda: read_subscription(SCHEMA, filter))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        made = tried(lambda: make_subscription(SCHEMA, id, filter, **ranking))
        if made is not None:
            assert from_record(SCHEMA, json.loads(json.dumps(to_record(made)))) == made
            for values in ({}, {"price": 1e308}, {"price": 0.0, "brand": "a", "sold": True, "day": 0, "made": 0}):
                assert isinstance(made.score_of(values), float)
                any(clause.holds(SCHEMA, values) for clause in made.clauses)


def schemas(source: Any) -> None:
    for make in (Schema, Schema.from_dict, Schema.from_json, Schema.from_toml):
        schema = tried(lambda make=make: make(source))
        if schema is not None:
            assert Schema.from_json(schema.to_json()) == schema


def tables(drawn: list[tuple[str, pa.DataType, list[Any]]]) -> None:
    columns, names = [], []
    for name, kind, values in drawn:
        try:
            columns.append(pa.array(values[:3], kind))
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
            columns.append(pa.nulls(3, kind))
        names.append(name)
    try:
        table = pa.Table.from_arrays(columns, names=names)
    except pa.ArrowInvalid:  # pyarrow makes a broken array of a set in a fixed-size list
        return
    for on_error in ("raise", "skip"):
        batch = tried(partial(events_from_arrow, SCHEMA, Vocabularies(SCHEMA), table, on_error=on_error))
        if batch is not None:
            assert len(batch.events()) == len(batch)
        loaded = tried(partial(subscriptions_from_arrow, SCHEMA, Vocabularies(SCHEMA), table, on_error=on_error))
        for row in range(0 if loaded is None else len(loaded)):
            assert all(isinstance(clause, Clause) for clause in subscription_at(loaded, row).clauses)


def tried(call: Callable[[], Any]) -> Any:
    """What the call gives; None if it refuses as it should."""
    try:
        return call()
    except TidingsError:
        return None


VALUES = st.lists(SCALARS | st.lists(SCALARS, max_size=4), min_size=3, max_size=3)
FUZZED = {
    "events": (events, ANYTHING | st.dictionaries(NAMES, ANYTHING, max_size=8)),
    "subscriptions": (subscriptions, st.tuples(ANYTHING, ANYTHING | TEXTS, st.dictionaries(FIELDS, ANYTHING, max_size=3))),
    "schemas": (schemas, ANYTHING | st.dictionaries(TEXTS | NAMES, st.sampled_from(["number", "bool", Number(), 3]), max_size=3)),
    "tables": (tables, st.lists(st.tuples(COLUMNS, TYPES, VALUES), min_size=1, max_size=6)),
}


def fuzz(what: str, examples: int, seed: int | None = None) -> None:
    check, inputs = FUZZED[what]
    quiet = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    judged = quiet(given(inputs)(check))
    (judged if seed is None else hypothesis.seed(seed)(judged))()


@pytest.mark.filterwarnings("ignore::tidings.errors.NeverMatchesWarning")
@pytest.mark.parametrize("what", FUZZED)
def test_only_our_errors(what):
    fuzz(what, at_most(150))
