"""Arrow in bulk is the same as row by row, for events and for subscriptions, good rows and bad."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidings.errors import BulkError, EventError, NeverMatchesWarning, SubscriptionError
from tidings.model.columns.arrays import EventEncoder, Vocabularies, encode_clauses, encode_events
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.gather import gather_clauses
from tidings.model.columns.subscription_tables import subscription_at, subscriptions_from_arrow
from tidings.model.columns.tables import arrow_schema, batch_of, events_from_arrow, events_to_arrow
from tidings.model.columns.tokens import tokenize_array
from tidings.model.door.event import Event, EventReader, read_event
from tidings.model.door.subscription import make_subscription
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Category, Number, Place, Schema, Time, Words
from tidings.model.values.text import tokenize

SCHEMA = Schema(
    {
        "price": Number(),
        "brand": Category(),
        "place": Place(),
        "about": Words(),
        "made": Time(),
        "area": Place(plane=True),
        "tags": Words("as-is"),
    }
)
EIGHTH = st.integers(-80, 80).map(lambda n: n / 8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WORDS = st.sampled_from(["red", "Blue", "grün", "a b", "!", ""])
BAD_NUMBER = st.sampled_from([math.nan, math.inf, -math.inf])
INSTANT = st.datetimes(timezones=st.just(UTC))


def place(reach: float) -> st.SearchStrategy[list[float]]:
    end = EIGHTH | st.sampled_from([-reach, reach, math.nan])
    return st.lists(end, min_size=4, max_size=4)


ROW = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.sampled_from(["a", "b", "", "c"]) | TEXT,
        "price": st.none() | EIGHTH | BAD_NUMBER,
        "brand": st.none() | TEXT,
        "place": st.none() | place(180.5),
        "about": st.none() | st.lists(st.none() | WORDS | TEXT, max_size=4),
        "made": st.none() | INSTANT,
        "area": st.none() | place(1e9),
        "tags": st.none() | st.lists(WORDS),
        "time": st.none() | INSTANT,
        "expires": st.none() | INSTANT,
    },
)
ARROW = {
    "id": pa.string(),
    "price": pa.float64(),
    "brand": pa.string(),
    "place": pa.list_(pa.float64(), 4),
    "about": pa.list_(pa.string()),
    "made": pa.timestamp("us", "UTC"),
    "area": pa.list_(pa.float64()),
    "tags": pa.large_list(pa.string()),
    "time": pa.timestamp("us"),
    "expires": pa.timestamp("us", "Asia/Tokyo"),
}


def vocabularies_of(*brands: str, words: str = "red blue b") -> Vocabularies:
    vocabularies = Vocabularies(SCHEMA)
    for brand in brands:
        vocabularies.categories["brand"].add(brand)
    for word in words.split():
        vocabularies.words.add(word)
    return vocabularies


def same_columns(left: Any, right: Any) -> None:
    for name in left.__slots__:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
        assert getattr(left, name).dtype == getattr(right, name).dtype, name


@settings(max_examples=120, deadline=None)
@given(st.lists(ROW, max_size=6), st.booleans())
def test_events_in_bulk_are_events_row_by_row(rows: list[dict[str, Any]], chunked: bool) -> None:
    table = pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in ARROW.items()})
    if chunked and rows:
        table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    events, refused = EventReader(SCHEMA).batch(rows)
    vocabularies = vocabularies_of(*(event.values.get("brand", "") for event in events[::2]))
    batch = events_from_arrow(SCHEMA, vocabularies, table, on_error="skip")
    assert [row for row, _ in batch.refused] == [row for row, _ in refused]
    same_columns(batch.columns, encode_events(SCHEMA, vocabularies, [event.values for event in events]))
    assert [(e.values, e.time, e.expires) for e in batch.events()] == [(e.values, e.time, e.expires) for e in events]
    made = [not rows[row].get("id") for row in batch.rows]
    assert [event.id for event, none in zip(events, made, strict=True) if not none] == [
        id for id, none in zip(batch.ids.to_pylist(), made, strict=True) if not none
    ]
    if refused:
        with pytest.raises(BulkError, match=f"{len(refused)} events refused"):
            events_from_arrow(SCHEMA, vocabularies, table)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=6), st.booleans())
def test_events_to_arrow_and_back(rows: list[dict[str, Any]], keyed: bool) -> None:
    events, _ = EventReader(SCHEMA).batch(rows)
    key = "brand" if keyed else None
    if keyed:
        events = [Event(e.id, {**e.values, "brand": e.id}, e.time, e.expires, bool(i % 2)) for i, e in enumerate(events)]
    table = events_to_arrow(SCHEMA, events, key)
    assert table.schema == arrow_schema(SCHEMA, key)
    vocabularies = vocabularies_of("a")
    assert events_from_arrow(SCHEMA, vocabularies, table, key).events() == events
    assert batch_of(SCHEMA, vocabularies, events, key).events() == events
    encoder = EventEncoder(SCHEMA, vocabularies)
    for event in events:
        same_columns(encoder(event.values), encode_events(SCHEMA, vocabularies, [event.values]))


DAY = datetime(2026, 1, 1)
POINT = {"x": 1.0, "y": 2.0}


@pytest.mark.parametrize(
    "price", [pa.array([3], pa.uint8()), pa.array([Decimal("3.0")]), pa.array([3.0], pa.float32()), pa.array([3])]
)
@pytest.mark.parametrize(
    "place", [pa.array([POINT]), pa.array([[1, 2]], pa.list_(pa.int32(), 2)), pa.array([[1, 2]]), pa.array([[1.0, 2.0, 1.0, 2.0]])]
)
@pytest.mark.parametrize(
    "made",
    [
        pa.array([DAY.date()]),
        pa.array(["2026-01-01"]),
        pa.array([1_767_225_600]),
        pa.array([1_767_225_600.0]),
        pa.array([DAY], pa.timestamp("ns")),
        pa.array([DAY], pa.timestamp("s", "Asia/Tokyo")),
    ],
)
def test_other_arrow_forms(price: pa.Array, place: pa.Array, made: pa.Array) -> None:
    source = {"id": "7", "price": 3, "brand": "x", "place": (1, 2), "about": "a b", "made": "2026-01-01"}
    expected = read_event(SCHEMA, source).values
    brand = pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), pa.array(["unused", "x", None]))
    about = pa.array(["a b"], pa.large_string())
    table = pa.table({"id": [7], "price": price, "brand": brand, "place": place, "about": about, "made": made})
    vocabularies = vocabularies_of("x", words="a b")
    batch = events_from_arrow(SCHEMA, vocabularies, table)
    assert batch.events() == [Event("7", expected)]
    same_columns(batch.columns, encode_events(SCHEMA, vocabularies, [expected]))
    assert events_from_arrow(SCHEMA, vocabularies, table.to_batches()[0]).events() == [Event("7", expected)]


@given(st.lists(TEXT | st.text("aB_ 7-.\n\0é"), max_size=6), st.sampled_from(["plain", "as-is"]))
def test_tokens_in_bulk_are_tokens_one_by_one(texts: list[str], tokenizer: str) -> None:
    start, token, distinct = tokenize_array(pa.array(texts, pa.string()), Words(tokenizer))
    found = [{distinct[place] for place in token[a:b]} for a, b in itertools.pairwise(start.tolist())]
    assert found == [tokenize(text, tokenizer) for text in texts]
    assert len(set(distinct)) == len(distinct)


def test_null_columns_and_slices() -> None:
    nulls = pa.table({name: pa.nulls(3) for name in ARROW})
    assert [event.values for event in events_from_arrow(SCHEMA, vocabularies_of(), nulls).events()] == [{}, {}, {}]
    places = pa.array([[0, 0], None, [1, 2], [3, 4]], pa.list_(pa.float64(), 2))
    table = pa.table({"place": places, "about": pa.array([["x"], ["red"], None, ["blue", "red"]])}).slice(1)
    batch = events_from_arrow(SCHEMA, vocabularies_of(), table)
    assert batch.columns.box[1:].tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert batch.columns.word.tolist() == [0, 0, 1]


def test_made_ids_are_uuids() -> None:
    batch = events_from_arrow(SCHEMA, vocabularies_of(), pa.table({"price": np.arange(100.0)}))
    ids = batch.ids.to_pylist()
    assert len(set(ids)) == 100
    assert all(len(id) == 32 and id[12] == "4" and id[16] in "89ab" and set(id) <= set("0123456789abcdef") for id in ids)
    assert (batch.time == NONE).all()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"prize": [1.0]}, "column 'prize' is unknown: this topic's events have id, time, expires, price"),
        ({"price": ["3"]}, "column 'price' is string: a column of numbers is accepted"),
        ({"price": [True]}, "column 'price' is bool: a column of numbers is accepted"),
        ({"brand": [1]}, "column 'brand' is int64: a column of strings is accepted"),
        ({"place": ["x"]}, "column 'place' is string: a place as struct<x, y>"),
        ({"place": [["x"]]}, "a place as struct<x, y>"),
        ({"place": [{"lon": 1}]}, "a place as struct<x, y>"),
        ({"about": [[1]]}, "a column of strings or lists of strings"),
        ({"made": [[1]]}, "a column of timestamps, dates"),
        ({"id": [[1]]}, "column 'id' is list<item: int64>: a column of strings"),
        ({"deleted": [True]}, "column 'deleted' is unknown"),
    ],
)
def test_refused_columns(columns: dict[str, list[Any]], sentence: str) -> None:
    with pytest.raises(EventError) as error:
        events_from_arrow(SCHEMA, vocabularies_of(), pa.table(columns), on_error="skip")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"price": [math.nan]}, "row 0: price is nan: a finite number is accepted"),
        ({"id": [""]}, "row 0: id is '': a string that is not empty is accepted"),
        ({"id": ["a", "b", "a"]}, "row 2: id is 'a', which an earlier row has: an id stands once in a batch"),
        ({"place": [[170.0, 0.0, -170.0, 1.0]]}, "row 0: place is (170.0, 0.0, -170.0, 1.0): a box across the 180th meridian"),
        ({"place": [[0.0, 1.0, 1.0, 0.0]]}, "row 0: place is (0.0, 1.0, 1.0, 0.0): a box has xmin <= xmax and ymin <= ymax"),
        ({"place": [[0.0, 1.0, 1.0]]}, "row 0: place is [0.0, 1.0, 1.0]: (x, y)"),
        ({"place": [{"x": 200.0, "y": 1.0}]}, "longitude from -180 to 180"),
        ({"about": [["a", None]]}, "row 0: about is ['a', None]: a string or a list of strings is accepted"),
        ({"about": ["x" * 10_000_000]}, "row 0: about is a string of 10000000 characters: at most 1000000 are accepted"),
        ({"about": [["x" * 600_000, "y" * 600_000]]}, "row 0: about has words of 1200000 characters"),
        ({"brand": ["x" * 10_000_000]}, "row 0: brand is a string of 10000000 characters"),
        ({"id": ["x" * 10_000_000]}, "row 0: id is a string of 10000000 characters"),
        ({"made": ["soon"]}, "row 0: made: 'soon' is not a time"),
        ({"made": [1e30]}, "row 0: made is 1e+30: a time of the years 1 to 9999 is accepted"),
        ({"made": [2**62]}, "row 0: made is 4611686018427387904: a time of the years 1 to 9999"),
        ({"made": pa.array([2**62], pa.timestamp("s"))}, "row 0: made is 4611686018427387904: a time of the years 1 to 9999"),
    ],
)
def test_refused_rows(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BulkError) as error:
        events_from_arrow(SCHEMA, vocabularies_of(), pa.table(columns))
    assert sentence in str(error.value)


def test_keyed_events() -> None:
    table = pa.table({"sku": ["a", "a"], "deleted": [True, None]})
    assert events_from_arrow(SCHEMA, vocabularies_of(), table, key="sku").events() == [Event("a", {}, deleted=True), Event("a", {})]
    with pytest.raises(EventError, match="column 'sku' is missing"):
        events_from_arrow(SCHEMA, vocabularies_of(), pa.table({"price": [1.0]}), key="sku")
    with pytest.raises(BulkError, match="row 0: sku is None"):
        events_from_arrow(SCHEMA, vocabularies_of(), pa.table({"sku": pa.nulls(1, pa.string())}), key="sku")


def test_bad_on_error_and_repeated_column() -> None:
    with pytest.raises(EventError, match="on_error is 'ignore': 'raise' or 'skip' is accepted"):
        events_from_arrow(SCHEMA, vocabularies_of(), pa.table({"price": [1.0]}), on_error="ignore")
    with pytest.raises(EventError, match="column 'price' stands twice"):
        events_from_arrow(SCHEMA, vocabularies_of(), pa.table([[1.0], [2.0]], names=["price", "price"]))


SUBSCRIPTION = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b", "c", "d", "e", "", None]) | TEXT},
    optional={
        "price.lo": st.none() | EIGHTH | BAD_NUMBER,
        "price.hi": st.none() | EIGHTH,
        "made.lo": st.none() | INSTANT,
        "made.hi": st.none() | INSTANT,
        "brand.in": st.none() | st.lists(st.sampled_from(["x", "y", "z"]), max_size=4),
        "place.box": st.none() | place(180.5),
        "about.all": st.none() | st.lists(WORDS, max_size=3),
        "about.any": st.none() | st.lists(WORDS, max_size=3),
        "price.weight": st.none() | EIGHTH,
        "score": st.none() | EIGHTH | BAD_NUMBER,
        "k": st.none() | st.integers(-2, 5),
        "window": st.none() | st.sampled_from(["1 day", "3 events", "60 min", "soon"]),
        "by": st.none() | st.sampled_from(["-price", "2 * price", "prize"]),
        "expires": st.none() | INSTANT,
        "owner": st.none() | TEXT,
        "tags": st.none() | st.lists(st.sampled_from(["x", "y", "é", ""]), max_size=3),
        "similarity": st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5]), min_size=2, max_size=2),
        "error": st.none() | st.sampled_from([0.0, 0.25, 1.0]),
    },
)
SUBSCRIPTION_ARROW = {
    "id": pa.string(),
    "price.lo": pa.float64(),
    "price.hi": pa.float64(),
    "made.lo": pa.timestamp("us", "UTC"),
    "made.hi": pa.timestamp("us", "UTC"),
    "brand.in": pa.list_(pa.string()),
    "place.box": pa.list_(pa.float64(), 4),
    "about.all": pa.list_(pa.string()),
    "about.any": pa.list_(pa.string()),
    "price.weight": pa.float64(),
    "score": pa.float64(),
    "k": pa.int64(),
    "window": pa.string(),
    "by": pa.string(),
    "expires": pa.timestamp("us", "UTC"),
    "owner": pa.string(),
    "tags": pa.list_(pa.string()),
    "similarity": pa.list_(pa.float64(), 2),
    "error": pa.float64(),
}


def clauses_of(row: dict[str, Any]) -> list[Clause] | None:
    """The clauses of a row of the columnar form, from its definition; None if it is to be refused."""
    ranges: dict[str, tuple[float, float]] = {}
    for name in ("price", "made"):
        lo, hi = (read_event(SCHEMA, {name: row.get(f"{name}.{end}")}).values.get(name) for end in ("lo", "hi"))
        if lo is not None or hi is not None:
            ranges[name] = (-math.inf if lo is None else float(lo), math.inf if hi is None else float(hi))
            if ranges[name][0] > ranges[name][1]:
                return None
    within = {"brand": frozenset(row["brand.in"])} if row.get("brand.in") is not None else {}
    box = read_event(SCHEMA, {"place": row.get("place.box")}).values.get("place")
    every = row.get("about.all")
    any_of = row.get("about.any")
    words = tokenize(every or [], "plain")
    alternatives = [frozenset[str]()] if any_of is None else list(dict.fromkeys(tokenize(text, "plain") for text in any_of))
    if row.get("brand.in") == [] or (every is not None and not words):
        return None
    if any_of is not None and (not alternatives or not all(alternatives)):
        return None
    return [Clause(ranges=ranges, within=within, box=box, words=words | one) for one in alternatives]


def row_by_row(rows: list[dict[str, Any]]) -> dict[int, Any]:
    """The good subscriptions by row."""
    good: dict[int, Any] = {}
    for number, row in enumerate(rows):
        ranking = {name: value for name, value in row.items() if "." not in name and name != "id"}
        if row.get("price.weight") is not None:
            ranking["weights"] = {"price": row["price.weight"]}
        try:
            clauses = clauses_of(row)
            made = make_subscription(SCHEMA, row["id"], None, **ranking)
        except (EventError, SubscriptionError):
            continue
        if clauses is not None and made.id not in {each.id for each, _ in good.values()}:
            good[number] = (made, clauses)
    return good


@settings(max_examples=150, deadline=None)
@given(st.lists(SUBSCRIPTION, max_size=5))
@example([{"id": "a", "brand.in": ["x", "y"], "about.any": ["red", "Blue"]}, {"id": "b", "brand.in": ["z", "y"]}])
def test_columnar_subscriptions_are_subscriptions_row_by_row(rows: list[dict[str, Any]]) -> None:
    table = pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in SUBSCRIPTION_ARROW.items()})
    vocabularies = Vocabularies(SCHEMA)
    batch = subscriptions_from_arrow(SCHEMA, vocabularies, table, on_error="skip")
    expected = row_by_row(rows)
    assert batch.rows.tolist() == list(expected)
    for place, (made, clauses) in enumerate(expected.values()):
        read = subscription_at(batch, place)
        assert set(map(repr_of, read.clauses)) == set(map(repr_of, clauses))
        assert len(read.clauses) == len(clauses)
        for field in ("id", "score", "weights", "similarity", "k", "window", "by", "expires", "owner", "tags", "error"):
            assert getattr(read, field) == getattr(made, field), field
    again = [clause for place in range(len(batch)) for clause in subscription_at(batch, place).clauses]
    # The alternatives of a row share its sets of codes; packed, each has its own, as when they are encoded one by one.
    packed = gather_clauses(batch.clauses, np.arange(len(batch.clauses)))
    same_columns(packed, encode_clauses(SCHEMA, vocabularies, again, batch.clauses.owner.tolist()))


def repr_of(clause: Clause) -> str:
    return repr((sorted(clause.ranges.items()), sorted(map(sorted, clause.within.values())), clause.box, sorted(clause.words)))


def test_nothing_is_added_when_a_row_is_refused() -> None:
    vocabularies = Vocabularies(SCHEMA)
    table = pa.table({"id": ["a", "b"], "brand.in": [["x"], ["y"]], "about.any": [["red"], ["!"]], "about.all": [["blue"], None]})
    with pytest.raises(BulkError, match=r"row 1: about.any is \['!'\]: one word at least in every element"):
        subscriptions_from_arrow(SCHEMA, vocabularies, table)
    assert len(vocabularies.words) == len(vocabularies.categories["brand"]) == 0
    batch = subscriptions_from_arrow(SCHEMA, vocabularies, table, on_error="skip")
    assert batch.table.num_rows == len(batch) == 1
    assert sorted(vocabularies.words.strings) == ["blue", "red"]
    assert vocabularies.categories["brand"].strings == ["x"]


def test_filter_column() -> None:
    filters = ["price < 5 OR brand = 'x'", None, "price <", "price < 5 OR brand = 'x'", "price < 1 AND price > 2"]
    vocabularies = Vocabularies(SCHEMA)
    table = pa.table({"id": list("abcde"), "filter": filters, "score": ["1", "2 * price", None, None, None]})
    with pytest.warns(NeverMatchesWarning):
        batch = subscriptions_from_arrow(SCHEMA, vocabularies, table, on_error="skip")
    expected = [make_subscription(SCHEMA, id, filter) for id, filter in zip("abd", [*filters[:2], filters[3]], strict=True)]
    assert [row for row, _ in batch.refused] == [2]
    assert batch.clauses.owner.tolist() == [0, 0, 1, 2, 2]
    read = [subscription_at(batch, row) for row in range(3)]
    assert [s.clauses for s in read] == [s.clauses for s in expected]
    assert [s.filter for s in read] == [s.filter for s in expected]
    assert subscription_at(batch, 3).clauses == ()
    assert (read[1].score, read[1].terms, read[1].score_source) == (0.0, {"price": 2.0}, "2 * price")
    same_columns(
        batch.clauses,
        encode_clauses(SCHEMA, vocabularies, [c for s in expected for c in s.clauses], batch.clauses.owner.tolist()),
    )


def test_window_columns() -> None:
    for column, texts in (
        (pa.array([3, None]), ["3 events", None]),
        (pa.array([90_000, None], pa.duration("ms")), ["90 s", None]),
        (pa.array([60, None], pa.duration("s")), ["1 min", None]),
    ):
        batch = subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), pa.table({"id": ["a", "b"], "window": column}))
        assert batch.ranking.columns["window"].to_pylist() == texts
    similar = pa.array([{"alpha": 0.5, "theta": 1.0}])
    batch = subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), pa.table({"id": ["a"], "similarity": similar}))
    assert subscription_at(batch, 0).similarity == (0.5, 1.0)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"price.low": [1.0]}, "column 'price.low' is unknown: a table of subscriptions has id, filter, score"),
        ({"area.box": [[1.0, 2.0, 3.0, 4.0]]}, "column 'area.box' is unknown"),
        ({"filter": ["price < 1"], "price.lo": [1.0]}, "columns filter and price.lo stand in one table"),
        ({"price.lo": ["1"]}, "column 'price.lo' is string: a column of numbers is accepted"),
        ({"brand.in": ["x"]}, "column 'brand.in' is string: a column of lists of strings is accepted"),
        ({"k": [1.5]}, "column 'k' is double: a column of whole numbers is accepted"),
        ({"window": [1.5]}, "column 'window' is double"),
        ({"similarity": [1.5]}, "column 'similarity' is double: a column of struct<alpha, theta>"),
        ({"filter": [1]}, "column 'filter' is int64: a column of strings is accepted"),
        ({"owner": [1]}, "column 'owner' is int64: a column of strings is accepted"),
    ],
)
def test_refused_subscription_columns(columns: dict[str, list[Any]], sentence: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), pa.table({"id": ["a"], **columns}), on_error="skip")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"price.lo": [2.0], "price.hi": [1.0]}, "row 0: price.lo is 2 and price.hi is 1: lo <= hi is accepted"),
        ({"price.lo": [math.nan]}, "row 0: price.lo is nan: a finite number is accepted"),
        ({"place.box": [[0.0, 1.0, 1.0, 0.0]]}, "row 0: place.box is (0.0, 1.0, 1.0, 0.0): a box has xmin <= xmax"),
        ({"brand.in": [[]]}, "row 0: brand.in is []: one word at least, or null, is accepted"),
        ({"brand.in": [[None]]}, "row 0: brand.in is [None]: a string or a list of strings"),
        ({"about.all": [["!"]]}, "row 0: about.all is ['!']: one word at least, or null, is accepted"),
        ({"k": [-1]}, "row 0: k is -1: a whole number from 0"),
        ({"window": ["soon"]}, "row 0: window is 'soon': a duration above 0"),
        ({"window": [0]}, "row 0: window is 0: a duration above 0"),
        ({"by": ["prize"]}, "row 0: by is 'prize': an expression as '-price'"),
        ({"score": ["prize"]}, "row 0: score is 'prize': a linear expression"),
        ({"score": [math.inf]}, "row 0: score is inf: a finite number is accepted"),
        ({"error": [1.0]}, "row 0: error is 1.0: a number above 0 and below 1"),
        ({"similarity": [[0.5, 2.0]]}, "row 0: similarity is [0.5, 2.0]: (alpha, theta), two numbers from 0 to 1"),
        ({"similarity": [[0.5]]}, "row 0: similarity is [0.5]: (alpha, theta)"),
        ({"price.weight": [-1.0]}, "row 0: price.weight is -1.0: a finite number of 0 or more is accepted"),
        ({"id": pa.nulls(1, pa.string())}, "row 0: id is None: a string that is not empty is accepted"),
        ({"filter": ["prize < 1"]}, "row 0: "),
        ({"expires": ["soon"]}, "row 0: expires: 'soon' is not a time"),
        ({"owner": ["x" * 10_000_000]}, "row 0: owner is a string of 10000000 characters"),
    ],
)
def test_refused_subscription_rows(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BulkError) as error:
        subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), pa.table({"id": ["a"], **columns}))
    assert sentence in str(error.value)


def test_the_first_twenty_and_the_count() -> None:
    table = pa.table({"id": [str(row % 30) for row in range(90)]})
    with pytest.raises(BulkError) as error:
        subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table)
    assert len(error.value.rows) == 60
    assert str(error.value).count("\n") == 21
    assert "row 30: id is '0', which an earlier row has" in str(error.value)
    assert "... and 40 more" in str(error.value)
    with pytest.raises(SubscriptionError, match="column 'id' is missing"):
        subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), pa.table({"k": [1]}))
