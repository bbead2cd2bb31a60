"""Subscriptions at the door: forms that agree, records that read back, and one sentence for every kind of bad input."""

from __future__ import annotations

import json
import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import NeverMatchesWarning, SubscriptionError
from tidings.model.door.subscription import Subscription, changed, make_subscription, read_subscription
from tidings.model.door.subscription_record import from_record, to_record
from tidings.model.filter.clause import Clause
from tidings.model.filter.linear import Linear, parse_linear
from tidings.model.values.schema import Category, Number, Place, Schema, Time, Words
from tidings.model.values.window import LARGEST, Window, parse_window

SCHEMA = Schema(
    {
        "price": Number(0, 10_000),
        "brand": Category(),
        "place": Place(),
        "about": Words(),
        "made": Time(),
        "in": Number(),
        "area": Place(),
    }
)
RANKING = {
    "score": "2 * (price - 3) / 4 + 1 - in",
    "weights": {"price": 2, "place": 0.5},
    "similarity": (0.5, 0.25),
    "k": 3,
    "window": "1.5 h",
    "by": "-price",
    "expires": "2026-01-01",
    "owner": "shop",
    "tags": ["b", "a", "b"],
    "error": 0.125,
}


def test_python_and_json_agree() -> None:
    made = make_subscription(SCHEMA, "ann", "price <= 3300", **RANKING)
    assert made.clauses == (Clause(ranges={"price": (-math.inf, 3300.0)}),)
    assert (made.score, dict(made.terms)) == (-0.5, {"price": 0.5, "in": -1.0})
    assert made.score_of({"price": 9.0, "in": 1.0}) == 3.0
    assert math.isnan(made.score_of({"price": 9.0}))
    assert (made.window, made.expires) == (Window(duration=5_400_000_000), 1_767_225_600_000_000)
    source = {"id": "ann", "filter": "price <= 3300", **RANKING}
    assert read_subscription(SCHEMA, source) == made
    assert read_subscription(SCHEMA, json.dumps(source).encode()) == made


def test_filter_forms() -> None:
    tree = {"op": "<=", "args": [{"property": "price"}, 3300]}
    made = make_subscription(SCHEMA, "ann", tree)
    assert made.clauses == make_subscription(SCHEMA, "ann", "price <= 3300").clauses
    assert json.loads(made.filter or "") == tree
    assert make_subscription(SCHEMA, 7).clauses == (Clause(),)
    assert make_subscription(SCHEMA, 7).id == "7"


def test_never_matching_is_accepted_with_a_warning() -> None:
    with pytest.warns(NeverMatchesWarning, match="can never match"):
        made = make_subscription(SCHEMA, "ann", "price < 3 AND price > 3")
    assert made.clauses == ()
    assert from_record(SCHEMA, to_record(made)) == made


def test_changed() -> None:
    made = make_subscription(SCHEMA, "ann", "price <= 3300", **RANKING)
    assert changed(SCHEMA, made, {}) == made
    after = changed(SCHEMA, made, {"score": 3, "k": None, "filter": "price < 5", "weights": None})
    assert (after.score, after.terms, after.score_source, after.k, after.weights, after.window) == (
        3.0,
        {},
        None,
        None,
        {},
        made.window,
    )
    assert after.filter == "price < 5"
    assert changed(SCHEMA, made, {"score": None}).score == 1.0
    assert changed(SCHEMA, made, {"score": None}).terms == {}
    with pytest.raises(SubscriptionError, match="id is 'bob': a subscription keeps its id 'ann'"):
        changed(SCHEMA, made, {"id": "bob"})
    with pytest.raises(SubscriptionError, match="k is -1"):
        changed(SCHEMA, made, {"k": -1})


BAD = [
    ({"score": math.nan}, "score is nan: a finite number is accepted"),
    ({"score": 10**400}, "a finite number is accepted"),
    ({"score": True}, "score is True: a finite number is accepted"),
    ({"score": "price * price"}, "a product has at most one side with attributes"),
    ({"score": "1 / price"}, "a divisor none"),
    ({"score": "prize"}, "attribute 'prize' is not in the schema"),
    ({"score": "brand"}, "attribute 'brand' is a Category"),
    ({"score": "1 / 0"}, "score is '1 / 0': a linear expression"),
    ({"score": "1e400 * price"}, "the number inf: a finite number"),
    ({"score": "1e308 * (10 * price)"}, "its numbers are too large"),
    ({"score": "price ** 2"}, "a linear expression"),
    ({"score": "price <"}, "a linear expression"),
    ({"score": "__import__('os')"}, "a linear expression"),
    ({"score": "(" * 1900}, "a linear expression"),
    ({"score": "-" * 1900 + "1"}, "a linear expression"),
    ({"score": "x" * 10_000_000}, "an expression of 10000000 characters: at most 2000 are accepted"),
    ({"weights": {"prize": 1}}, "weights names 'prize': the attributes of this topic are price, brand"),
    ({"weights": {"price": -1}}, "weights.price is -1: a finite number of 0 or more is accepted"),
    ({"weights": {"price": math.inf}}, "weights.price is inf: a finite number of 0 or more"),
    ({"weights": 3}, "weights is 3: an object"),
    ({"similarity": (1.5, 0.5)}, "similarity.alpha is 1.5: a number from 0 to 1 is accepted"),
    ({"similarity": (0.5, -1)}, "similarity.theta is -1: a number from 0 to 1 is accepted"),
    ({"similarity": 0.5}, "similarity is 0.5: (alpha, theta)"),
    ({"k": -1}, "k is -1: a whole number from 0"),
    ({"k": 1.5}, "k is 1.5: a whole number from 0"),
    ({"k": True}, "k is True: a whole number from 0"),
    ({"k": 2**31}, "k is 2147483648: a whole number from 0 to 2147483647"),
    ({"window": "soon"}, "window is 'soon': a duration above 0 as '1 day'"),
    ({"window": "0 s"}, "window is '0 s'"),
    ({"window": "1.5 events"}, "window is '1.5 events'"),
    ({"window": "3 fortnights"}, "window is '3 fortnights'"),
    ({"window": -5}, "window is -5"),
    ({"window": True}, "window is True"),
    ({"window": timedelta(0)}, "window is datetime.timedelta(0)"),
    ({"window": "9999999999999999 weeks"}, "window is '9999999999999999 weeks'"),
    ({"window": "9" * 10_000_000}, "window is '999"),
    ({"by": 3}, "by is 3: an expression as"),
    ({"by": "cheapest"}, "by is 'cheapest': an expression as '-price' or an object"),
    ({"expires": "soon"}, "expires: 'soon' is not a time"),
    ({"owner": 3}, "owner is 3: a string is accepted"),
    ({"error": 0}, "error is 0: a number above 0 and below 1 is accepted"),
    ({"error": 1.0}, "error is 1.0: a number above 0 and below 1 is accepted"),
    ({"error": 7}, "error is 7: a number from 0 to 1"),
    ({"colour": 7}, "field 'colour' (with value 7) is unknown: a subscription has id, filter, score"),
    ({"schema": 7}, "field 'schema' (with value 7) is unknown: a subscription has id, filter, score"),
    ({"filter": 7}, "filter is 7: CQL2 as text or as a JSON object is accepted"),
]


@pytest.mark.parametrize(("fields", "sentence"), BAD, ids=range(len(BAD)))
def test_refused(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        read_subscription(SCHEMA, {"id": "ann", **fields})
    assert sentence in str(error.value)
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"filter": "price < 3"}, "id is None: a string that is not empty is accepted"),
        ({"id": ""}, "id is '': a string that is not empty is accepted"),
        ([], "subscription [] (list): an object with id and filter is accepted"),
        ('{"id": }', "broken JSON at byte 7"),
    ],
)
def test_refused_whole(source: object, sentence: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        read_subscription(SCHEMA, source)
    assert sentence in str(error.value)


def test_an_attribute_may_be_a_keyword() -> None:
    assert parse_linear(SCHEMA, "by", " 2e3 - in*1.5 + 0.5 ") == Linear(2000.5, {"in": -1.5})


@pytest.mark.parametrize(
    ("value", "window"),
    [
        ("1 day", Window(duration=86_400_000_000)),
        ("90 s", Window(duration=90_000_000)),
        ("5 minutes", Window(duration=300_000_000)),
        ("2 h", Window(duration=7_200_000_000)),
        ("2h", Window(duration=7_200_000_000)),
        ("1 Week", Window(duration=604_800_000_000)),
        ("0.25 ms", Window(duration=250)),
        ("1000 events", Window(count=1000)),
        ("1 event", Window(count=1)),
        (17, Window(count=17)),
        (timedelta(minutes=1), Window(duration=60_000_000)),
        (Window(count=3), Window(count=3)),
    ],
)
def test_windows(value: object, window: Window) -> None:
    assert parse_window(value) == window


WINDOWS = st.builds(Window, duration=st.integers(1, LARGEST)) | st.builds(Window, count=st.integers(1, LARGEST))


@given(WINDOWS)
def test_a_window_reads_back(window: Window) -> None:
    assert parse_window(str(window)) == window


def test_a_window_is_one_of_the_two() -> None:
    for arguments in ((None, None), (1, 1), (0, None), (None, -1)):
        with pytest.raises(SubscriptionError, match="one of them"):
            Window(*arguments)


LOWER, UPPER = st.sampled_from([-math.inf, -1.5, 0.0]), st.sampled_from([0.0, 2.0, math.inf])
NAMES = st.frozensets(st.text(st.characters(exclude_categories=["Cs"])), min_size=1)
CLAUSES = st.builds(
    Clause,
    ranges=st.dictionaries(st.sampled_from(["price", "made"]), st.tuples(LOWER, UPPER)),
    within=st.dictionaries(st.just("brand"), NAMES),
    without=st.dictionaries(st.just("brand"), NAMES),
    nulls=st.frozensets(st.sampled_from(["price", "place"])),
    present=st.frozensets(st.sampled_from(["price", "place"])),
    box=st.none() | st.tuples(LOWER, LOWER, UPPER, UPPER),
    words=st.frozensets(st.text(st.characters(exclude_categories=["Cs"]))),
)


@given(st.lists(CLAUSES).map(tuple), WINDOWS, st.integers(0, 10**15))
def test_records_of_columnar_subscriptions_read_back(clauses: tuple[Clause, ...], window: Window, expires: int) -> None:
    subscription = Subscription("ann", clauses, window=window, expires=expires, weights={"price": 2.0})
    assert from_record(SCHEMA, json.loads(json.dumps(to_record(subscription), allow_nan=False))) == subscription


def test_records_of_filters_read_back() -> None:
    for filter in (None, "price < 5 OR brand = 'x'", {"op": "isNull", "args": [{"property": "price"}]}):
        for ranking in ({}, RANKING):
            subscription = make_subscription(SCHEMA, "ann", filter, **ranking)
            assert from_record(SCHEMA, json.loads(json.dumps(to_record(subscription), allow_nan=False))) == subscription
