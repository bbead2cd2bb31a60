"""A topic in parts answers as one in a single folder does, whichever way it is cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, SPARK, START, drain, rows_of, subscriptions
from tidings.durable.snapshots import snapshots_at
from tidings.errors import StorageError, SubscriptionError
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.columns.tables import events_from_arrow
from tidings.spark import build, match
from tidings.spark.frames import session
from tidings.spark.parts import match_parts
from tidings.spark.parts.cut import cut_by, extents

pytestmark = SPARK
CUTS = ["place", "price", "hash"]
FORMS = {
    "residue": "price <= 50 AND price + size > 60",
    "either": "price BETWEEN 1 AND 2 OR price BETWEEN 90 AND 95",
    "narrow": "price BETWEEN 10 AND 12 AND S_INTERSECTS(place, BBOX(1, 1, 2, 2))",
    "none": "price IS NULL",
    "all": None,
    "never": "price < 2 AND price > 3",
}


def table() -> pa.Table:
    """Columnar rows, of which many are narrow enough to lie in one cell, a few weights, and one that goes by similarity."""
    made = subscriptions(200, windows=False)
    low = np.asarray(made["price.lo"])
    made = made.set_column(made.column_names.index("price.hi"), "price.hi", pa.array(low + np.where(np.arange(200) % 2, 1.0, 40.0)))
    return made.append_column("price.weight", pa.array([0.5] * 200))


def events() -> pa.Table:
    """With some that lack a price or a place, and some whose place is a box."""
    given = EVENTS.drop_columns(["time"])
    price = [None if i % 11 == 0 else v for i, v in enumerate(given["price"].to_pylist())]
    boxes = []
    for i, place in enumerate(given["place"].to_pylist()):
        x, y = place["x"], place["y"]
        boxes.append(None if i % 13 == 0 else {"xmin": x, "ymin": y, "xmax": x + (i % 3), "ymax": y + (i % 2)})
    given = given.set_column(given.column_names.index("price"), "price", pa.array(price, pa.float64()))
    return given.set_column(given.column_names.index("place"), "place", pa.array(boxes))


@pytest.mark.parametrize("by", CUTS)
def test_no_match_is_missed_and_none_is_found_twice(by):
    """By the cells alone: whoever matches an event stands in exactly one part, which the event visits."""
    batch = subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table())
    ends = extents(SCHEMA, by, batch.clauses) if by in SCHEMA else np.empty((0, 4))
    ends = ends[np.isfinite(ends).all(axis=1)]
    cut = cut_by(SCHEMA, by, 5, np.stack([(ends[:, 0] + ends[:, 2]) / 2, (ends[:, 1] + ends[:, 3]) / 2], axis=1))
    part = dict(zip(batch.ids.to_pylist(), cut.subscriptions(SCHEMA, rows_of_batch(batch, 0)).tolist(), strict=True))
    read = events_from_arrow(SCHEMA, Vocabularies(SCHEMA), events())
    row, visited = cut.events(SCHEMA, read.columns, False)
    visits = set(zip(read.ids.take(pa.array(row)).to_pylist(), visited.tolist(), strict=True))
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(table(), time=START)
        found = rows_of(topic.match_batch(events()))
    assert all((event, part[subscription]) in visits for event, subscription, _ in found)
    assert len(set(part.values())) > 3, "the cells are in use"
    assert by == "hash" or len(row) < len(read) * cut.parts * 0.7, "events visit few"


@pytest.fixture(scope="module")
def answers():
    """What the embedded engine says, by (k, relaxed)."""
    with td.Topic("offers", SCHEMA) as topic:
        topic.subscribe_many(table(), time=START)
        return {
            ask: rows_of(topic.match_batch(events(), k=ask[0], relaxed=ask[1])) for ask in ((None, False), (3, False), (3, True))
        }


@pytest.mark.parametrize(
    ("by", "held"),
    [
        ("place", "in place"),
        ("hash", "fanned out"),
        pytest.param("place", "fanned out", marks=pytest.mark.deep),
        pytest.param("price", "in place", marks=pytest.mark.deep),
    ],
)
def test_parts_answer_as_one_topic(spark, tmp_path, monkeypatch, answers, by, held):
    monkeypatch.setattr(match_parts, "IN_PLACE", 0.5 if held == "in place" else 0.0)
    given, frame = table(), spark.createDataFrame(events()).repartition(2)
    parts = tmp_path / "parts"
    source = spark.createDataFrame(given).repartition(2)
    assert build(source, parts, "offers", SCHEMA, time=START, part_by=by, parts=4 if by == "place" else 2) == len(given)
    for (k, relaxed), want in answers.items():
        assert rows_of(match(frame, parts, k, relaxed)) == want
        assert want


def test_filters_and_similarity_in_parts_streaming(spark, tmp_path):
    """A stream, the k best, filters of every kind, a row that cannot be read."""
    ids = [*FORMS, "like"]
    filters = [*FORMS.values(), "A_CONTAINS(about, ('w1', 'w2')) AND S_INTERSECTS(place, BBOX(0, 0, 2, 2))"]
    similar = pa.array([None] * len(FORMS) + [[0.5, 0.3]], pa.list_(pa.float64()))
    given = pa.table({"id": ids, "filter": pa.array(filters), "similarity": similar})
    source, form = tmp_path / "events", spark.createDataFrame(events()).schema
    bad = events().set_column(1, "price", pa.array([np.nan, *[1.5] * (len(EVENTS) - 1)]))
    spark.createDataFrame(bad).repartition(2).write.parquet(str(source))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    build(spark.createDataFrame(given), whole, "offers", SCHEMA, time=START)
    build(spark.createDataFrame(given), parts, "offers", SCHEMA, time=START, part_by="price", parts=3)
    stream = spark.readStream.schema(form).parquet(str(source))
    drain(match(stream, parts, k=2, corrupt=True), tmp_path / "sink", tmp_path / "checkpoint")
    want = match(spark.read.schema(form).parquet(str(source)), whole, k=2, corrupt=True)
    got = spark.read.parquet(str(tmp_path / "sink"))
    assert sorted(map(repr, got.toArrow().to_pylist())) == sorted(map(repr, want.toArrow().to_pylist()))
    assert got.where("_corrupt IS NOT NULL").count() == 1


def test_what_takes_no_parts_says_so(spark, tmp_path):
    source = spark.createDataFrame(table())
    for by, sentence in (("brand", "a Category: a Number"), ("colour", "'hash' or an attribute is accepted")):
        with pytest.raises(SubscriptionError, match=sentence):
            build(source, tmp_path / "none", "offers", SCHEMA, part_by=by)
    with pytest.raises(SubscriptionError, match="parts is 0"):
        build(source, tmp_path / "none", "offers", SCHEMA, part_by="hash", parts=0)
    twice = source.union(source)
    with pytest.raises(SubscriptionError, match=r"an id stands once|which an earlier row has"):
        build(twice, tmp_path / "none", "offers", SCHEMA, part_by="hash", parts=2)
    assert not (tmp_path / "none").exists()
    folder = tmp_path / "parts"
    build(source, folder, "offers", SCHEMA, part_by="hash", parts=2)
    with pytest.raises(StorageError, match="holds a topic already"):
        build(source, folder, "offers", SCHEMA)
    assert snapshots_at(folder).manifest(1).topic == "offers"


def test_parts_are_built_of_bounded_batches(spark, tmp_path, monkeypatch):
    """Of one that needs a gigabyte Spark's buffer is copied at every write, and the build never ends."""
    before = spark.conf.get(session.BATCH_BYTES)
    monkeypatch.setattr(session, "BOUNDED", "1000")
    assert build(spark.createDataFrame(table()), tmp_path / "parts", "offers", SCHEMA, part_by="place", parts=3) == 200
    assert spark.conf.get(session.BATCH_BYTES) == before
    with session.bounded_batches(spark):
        assert spark.conf.get(session.BATCH_BYTES) == "1000"
