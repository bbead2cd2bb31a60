"""`follow`: of the changes of one id the last counts, whatever file or partition it comes in, and twice is as once."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.spark.samples import SCHEMA, SPARK, START, subscriptions
from tidings.durable.manifest_view import View
from tidings.errors import SubscriptionError
from tidings.spark import follow
from tidings.spark.transforms.follow import apply_changes

pytestmark = SPARK


def changes(**more) -> pa.Table:
    return pa.table({"id": ["s1", "new", "s2"], "op": ["delete", "upsert", None], "price.hi": [None, 50.0, 10.0], **more})


@pytest.fixture
def topic(tmp_path):
    with td.open(tmp_path / "offers", "offers", SCHEMA) as made:
        made.subscribe_many(subscriptions(10), time=START)
        made.flush()
        yield made


def test_changes_are_applied_once_and_the_last_of_an_id_counts(topic):
    later = pa.table({"id": ["new"], "op": ["delete"], "seq": [7]})
    table = pa.concat_tables([later, changes(seq=[3, 4, 5])], promote_options="default")
    for _ in range(2):
        assert apply_changes(topic, table, 1_000_000) == []
        assert len(topic) == 9
        assert topic.subscription("s2").clauses[0].ranges["price"][1] == 10.0
    assert len(View.open(topic.folder)) == 9


def test_refused_changes_are_told_with_the_reason(topic):
    wrong = pa.table({"id": ["x", "y"], "filter": ["price <", "price < 5"]})
    (refused,) = apply_changes(topic, wrong, 1_000_000, "skip")
    assert refused["id"] == "x"
    assert len(topic) == 11
    raw = pa.table({"key": [b"a", b"b", b"s3", b"c"], "value": [b'{"filter": "price < 9", "k": 2}', b"{", None, b'{"q": 1}']})
    assert [one["id"] for one in apply_changes(topic, raw, 1_000_000, "skip")] == ["b", "c"]
    assert topic.subscription("a").k == 2
    assert len(topic) == 11


@pytest.mark.parametrize("order", [{}, {"seq": [4, 4]}, {"time": [None, None]}])
def test_two_changes_of_one_id_without_an_order_are_refused(topic, order):
    form = {"time": pa.timestamp("us", "UTC"), "seq": pa.int64()}
    columns = {name: pa.array(values, form[name]) for name, values in order.items()}
    table = pa.table({"id": ["s1", "s1", "s2"], "op": ["upsert", "delete", "delete"]})
    for name, column in columns.items():
        table = table.append_column(name, pa.concat_arrays([column, column.slice(0, 1)]))
    with pytest.raises(SubscriptionError, match="id is 's1' in several changes of one micro-batch: a column 'seq' or 'time'"):
        apply_changes(topic, table, 1_000_000)
    assert len(topic) == 10
    (refused,) = apply_changes(topic, table, 1_000_000, "skip")
    assert refused["id"] == "s1"
    assert len(topic) == 9


def test_kafka_offsets_are_an_order(topic):
    raw = pa.table({"key": [b"a", b"a", b"b"], "value": [None, b'{"filter": "price < 9"}', b"{}"], "offset": [8, 7, 1]})
    assert apply_changes(topic, raw, 1_000_000) == []
    assert len(topic) == 11
    assert topic.subscription("b") is not None


@pytest.mark.parametrize("first", ["upsert", "delete"])
def test_files_of_one_micro_batch_are_taken_in_the_order_of_their_changes(spark, tmp_path, topic, first):
    """Whichever file is older."""
    folder = topic.folder
    topic.close()
    source = tmp_path / "changes"
    source.mkdir()
    for number, op in enumerate(("delete", "upsert") if first == "delete" else ("upsert", "delete")):
        when = {"upsert": [1], "delete": [2]}[op]
        pq.write_table(pa.table({"id": ["ann"], "op": [op], "price.hi": [9.0], "seq": when}), source / f"{number}.parquet")
    form = spark.read.parquet(str(source)).schema
    query = follow(
        spark.readStream.schema(form).parquet(str(source)), folder, tmp_path / "checkpoint", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert query.exception() is None
    assert View.open(folder).locate(pa.array(["ann", "s1"])).segment.tolist() == [-1, 0]


def test_a_query_that_may_skip_goes_on_and_keeps_what_it_refused(spark, tmp_path, topic):
    folder = topic.folder
    topic.close()
    source = tmp_path / "changes"
    source.mkdir()
    pq.write_table(pa.table({"id": ["s1", "s1", "s2"], "op": ["upsert", "delete", "delete"]}), source / "0.parquet")
    stream = spark.readStream.schema("id string, op string").parquet(str(source))
    follow(stream, folder, tmp_path / "checkpoint", on_error="skip", trigger={"availableNow": True}).awaitTermination()
    assert [one["id"] for one in json.loads((tmp_path / "checkpoint" / "refused" / "0.json").read_text())] == ["s1"]
    assert len(View.open(folder)) == 9
