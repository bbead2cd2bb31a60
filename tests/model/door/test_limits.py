"""Limits stand at the door: what they refuse is refused in one sentence, and what was accepted is read back whatever they say."""

from __future__ import annotations

import json
import math
from datetime import date, datetime

import pyarrow as pa
import pytest

from tidings import Bool, Category, Date, Number, Place, Schema, Time, Words
from tidings.errors import EventError, FilterError, SubscriptionError
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscription_at, subscriptions_from_arrow
from tidings.model.columns.tables import events_from_arrow, events_to_arrow
from tidings.model.door.event import EventReader, read_event
from tidings.model.door.event_record import event_from_record, event_to_record
from tidings.model.door.subscription import known_id, make_subscription
from tidings.model.door.subscription_record import from_record, to_record
from tidings.model.filter.compile import compile_filter
from tidings.model.values.limits import TEXT_LIMIT, recovering
from tidings.model.values.times import AHEAD, check_ahead, parse_time

SCHEMA = Schema({"price": Number(), "brand": Category(), "about": Words(), "made": Time(), "day": Date(), "sold": Bool()})
CONTROLS = ["points\0x", "a\x1fb", "a\nb", "\x7f", "\x85"]


@pytest.mark.parametrize("name", CONTROLS)
def test_control_characters_in_ids_and_owners_are_refused(name):
    for make in (lambda: make_subscription(SCHEMA, name), lambda: make_subscription(SCHEMA, "a", owner=name)):
        with pytest.raises(SubscriptionError, match="without control characters"):
            make()
    with pytest.raises(EventError, match=r"id is .* without control characters"):
        read_event(SCHEMA, {"id": name})
    with pytest.raises(EventError, match=r"sku is .* without control characters"):
        read_event(SCHEMA, {"sku": name}, key="sku")
    for table in (pa.table({"id": [name]}), pa.table({"id": ["a"], "owner": [name]})):
        assert "control" in subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table, on_error="skip").refused[0][1]
    assert "control" in events_from_arrow(SCHEMA, Vocabularies(SCHEMA), pa.table({"id": [name]}), on_error="skip").refused[0][1]


def test_what_was_accepted_is_read_back():
    record = to_record(make_subscription(SCHEMA, "a", owner="b")) | {"id": "points\0x", "owner": "a\x1fb"}
    assert (from_record(SCHEMA, record).id, from_record(SCHEMA, record).owner) == ("points\0x", "a\x1fb")
    assert known_id("points\0x") == "points\0x"
    long = to_record(make_subscription(SCHEMA, "a", "brand = 'x'")) | {"filter": f"brand = '{'x' * (TEXT_LIMIT + 1)}'"}
    assert len(from_record(SCHEMA, long).clauses) == 1
    table = pa.table({"id": ["a\x1f"], "owner": ["b\0"], "filter": [long["filter"]]})
    with recovering():
        assert len(subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table)) == 1


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_infinities_in_a_dict_are_refused_wherever_they_stand(value):
    for filter in (
        {"op": "<", "args": [{"property": "price"}, value]},
        {"op": "and", "args": [{"op": "<", "args": [{"property": "price"}, value]}]},
        {"op": "isNull", "args": [{"property": "price"}, value]},
        {"op": "isNull", "args": [{"property": "price"}], "note": value},
    ):
        with pytest.raises(FilterError, match=r"not CQL2 JSON|finite"):
            make_subscription(SCHEMA, "s", filter)


def test_a_dict_is_measured_as_the_text_that_it_is_kept_as():
    few = {"op": "=", "args": [{"property": "brand"}, "x" * TEXT_LIMIT]}
    for filter in (few, json.dumps(few), {"op": "and", "args": [few]}):
        with pytest.raises(FilterError, match=f"at most {TEXT_LIMIT} are accepted"):
            make_subscription(SCHEMA, "a", filter)
    fits = {"op": "=", "args": [{"property": "brand"}, "x" * (TEXT_LIMIT - 100)]}
    made = make_subscription(SCHEMA, "a", fits)
    assert from_record(SCHEMA, json.loads(json.dumps(to_record(made)))) == made


def test_whole_numbers_of_any_size():
    for number in (2**63, 10**30, -(10**300)):
        for filter in (
            {"op": ">", "args": [{"property": "price"}, number]},
            json.dumps({"op": ">", "args": [{"property": "price"}, number]}),
        ):
            (clause,) = compile_filter(SCHEMA, filter)
            assert clause.holds(SCHEMA, {"price": float(number) * (2 if number > 0 else 0.5)})
    for number in (10**400, 10**5000):
        with pytest.raises(FilterError):
            compile_filter(SCHEMA, {"op": ">", "args": [{"property": "price"}, number]})
        with pytest.raises(EventError):
            read_event(SCHEMA, {"id": "a", "price": number})
        with pytest.raises(SubscriptionError):
            make_subscription(SCHEMA, "a", by={"near": {"price": number}})
    with pytest.raises(FilterError, match=r"10000000.*a number that a float64 can hold is accepted"):
        compile_filter(SCHEMA, json.dumps({"op": ">", "args": [{"property": "price"}, 10**400]}))
    with pytest.raises(EventError):
        read_event(SCHEMA, {"id": 10**5000})


@pytest.mark.parametrize(
    "ranking",
    [
        {"by": '{"by": ' * 100_000},
        {"by": {"near": {"price": {}}}},
        {"by": {"near": {"brand": 1}}},
        {"by": {"near": {"price": 1}, "decay": "5 events"}},
        {"by": {"what": {1, 2}}},
        {"by": "{"},
        {"by": "price +"},
        {"score": "pri\ud800ce"},
        {"expires": 1e308},
        {"expires": "garbage"},
        {"window": object()},
        {"weights": {"price": 10**400}},
        {"k": 1.5},
    ],
)
def test_a_malformed_ranking_is_refused_in_one_sentence(ranking):
    with pytest.raises(SubscriptionError):
        make_subscription(SCHEMA, "a", **ranking)


@pytest.mark.parametrize("filter", ["brand = '\ud800'", '{"op": "\ud800', {"op": "=", "args": [{"property": "brand"}, "\ud800"]}])
def test_half_a_surrogate_pair_is_refused(filter):
    with pytest.raises(FilterError):
        make_subscription(SCHEMA, "a", filter)
    whole = {"op": "and", "args": [filter]} if isinstance(filter, dict) else filter
    with pytest.raises(FilterError):
        make_subscription(SCHEMA, "a", whole)


@pytest.mark.parametrize(
    "value", [1e308, -1e308, 10**400, "garbage", "2026-01-01T00:00:00+10:60", "0001-01-01T00:00:00+10:00", True, []]
)
def test_what_is_no_time(value):
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(value)


def test_rfc_3339_in_lower_case():
    assert parse_time("2026-01-01t00:00:00z") == parse_time("2026-01-01T00:00:00Z") == parse_time(datetime(2026, 1, 1))
    assert parse_time("1963-06-19t08:30:06.283185z") == parse_time("1963-06-19T08:30:06.283185Z")
    assert parse_time("2026-01-01T00:00:00+10:59") == parse_time("2025-12-31T13:01:00Z")


def test_an_event_is_at_most_a_day_ahead():
    check_ahead(AHEAD, 0)
    with pytest.raises(EventError, match=r"time is 9999-12-31T00:00:00\+00:00, more than 1 days ahead of the clock"):
        check_ahead(parse_time("9999-12-31"), 0)


def test_dates_and_truths():
    event = read_event(SCHEMA, {"id": "a", "day": "2026-01-31", "sold": True})
    assert event.values == {"day": parse_time("2026-01-31"), "sold": True}
    assert read_event(SCHEMA, {"id": "a", "day": date(2026, 1, 31), "sold": True}) == event
    assert event_from_record(SCHEMA, json.loads(json.dumps(event_to_record(event)))) == event
    table = events_to_arrow(SCHEMA, [event])
    assert (table["day"].type, table["sold"].type) == (pa.date32(), pa.bool_())
    batch = events_from_arrow(SCHEMA, Vocabularies(SCHEMA), table)
    assert batch.values(0) == event.values
    for bad in ({"day": "2026-01-31T00:00:00Z"}, {"day": 5}, {"day": datetime(2026, 1, 31)}, {"sold": 1}, {"sold": "true"}):
        with pytest.raises(EventError):
            read_event(SCHEMA, {"id": "a", **bad})


@pytest.mark.parametrize(
    ("text", "days", "truths"),
    [
        ("day = DATE('2026-01-31')", [31], [True, False]),
        ("day < DATE('2026-01-31')", [30], [True, False]),
        ("day <= DATE('2026-01-31')", [30, 31], [True, False]),
        ("day <> DATE('2026-01-31')", [30], [True, False]),
        ("day BETWEEN '2026-01-31' AND '2026-02-01'", [31], [True, False]),
        ("day IN (DATE('2026-01-30'), DATE('2026-01-01'))", [30], [True, False]),
        ("day NOT IN (DATE('2026-01-30'))", [31], [True, False]),
        ("T_EQUALS(day, INTERVAL('2026-01-30', '2026-01-30'))", [30], [True, False]),
        ("T_DURING(day, INTERVAL('2026-01-29', '2026-02-01'))", [30, 31], [True, False]),
        ("day > TIMESTAMP('2026-01-30T12:00:00Z')", [31], [True, False]),
        ("sold = TRUE", [30, 31], [True]),
        ("sold <> TRUE", [30, 31], [False]),
        ("NOT sold = TRUE", [30, 31], [False]),
        ("sold IN (TRUE, FALSE)", [30, 31], [True, False]),
        ("sold NOT IN (FALSE)", [30, 31], [True]),
    ],
)
def test_filters_on_dates_and_truths(text, days, truths):
    clauses = compile_filter(SCHEMA, text)
    assert not any(clause.residue for clause in clauses)
    for day in (30, 31):
        for sold in (True, False):
            values = read_event(SCHEMA, {"id": "a", "day": f"2026-01-{day}", "sold": sold}).values
            assert any(clause.holds(SCHEMA, values) for clause in clauses) == (day in days and sold in truths)


def test_columns_of_dates_and_truths():
    table = pa.table({"id": ["a", "b"], "day.lo": [date(2026, 1, 31), None], "sold.is": [None, False]})
    batch = subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table)
    assert subscription_at(batch, 0).clauses == tuple(compile_filter(SCHEMA, "day >= DATE('2026-01-31')"))
    assert subscription_at(batch, 1).clauses == tuple(compile_filter(SCHEMA, "sold = FALSE"))


def test_dictionary_columns_are_what_they_hold_and_a_name_stands_once():
    table = pa.table({"id": pa.array(["a", "b"]).dictionary_encode(), "price": pa.array([1.0, None]).dictionary_encode()})
    assert events_from_arrow(SCHEMA, Vocabularies(SCHEMA), table).values(0) == {"price": 1.0}
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array([1.0]), pa.array([2.0])], names=["id", "price", "price"])
    with pytest.raises(EventError, match="'price' stands twice"):
        events_from_arrow(SCHEMA, Vocabularies(SCHEMA), twice)
    with pytest.raises(SubscriptionError, match="a table is accepted"):
        subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), 5)  # type: ignore[arg-type]


TRIANGLE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 4], [0, 0]]]}


def test_shapes_are_found_by_their_box_and_judged_themselves():
    schema = Schema({"place": Place(shapes=True)})
    read = EventReader(schema)
    event = read({"id": "a", "place": TRIANGLE})
    assert tuple(event.values["place"]) == (0.0, 0.0, 4.0, 4.0)
    assert event_from_record(schema, json.loads(json.dumps(event_to_record(event)))) == event
    assert events_from_arrow(schema, Vocabularies(schema), events_to_arrow(schema, [event])).values(0) == event.values
    corner, inside = ("S_INTERSECTS(place, BBOX(3, 3, 4, 4))", "S_INTERSECTS(place, BBOX(1, 1, 4, 4))")
    held = [any(c.holds(schema, event.values) for c in compile_filter(schema, text)) for text in (corner, inside)]
    assert held == [False, True]
    boxes = Schema({"place": Place()})
    plain = EventReader(boxes)({"id": "a", "place": TRIANGLE}).values
    assert any(clause.holds(boxes, plain) for clause in compile_filter(boxes, corner))
    assert read({"id": "a", "place": [1, 1]}).values["place"] == (1.0, 1.0, 1.0, 1.0)
    with pytest.raises(EventError, match="a valid geometry is accepted"):
        read({"id": "a", "place": {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}})
