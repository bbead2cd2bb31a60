"""Words in a language on Spark: `match`, `search` and tables of subscriptions as the embedded engine has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tidings as td
from tests.spark.samples import SPARK, rows_of
from tidings.spark import build, match, search

pytestmark = SPARK
KINDS = {"english": td.Words(language="english", keep="+#@"), "callable": td.Words(tokenizer="builtins:str.split")}
ASKED = ["new york", "bank of england", "merg*", "C++", "東京", "mergers"]
TEXTS = ["Mergers in New York", "Bank of England merges", "modern C++ again", "東京都", "york is new", "vitamin C", None]


FILTERS = {f"s{n}": f"A_CONTAINS(about, ('{text}'))" for n, text in enumerate(ASKED)}


@pytest.mark.parametrize("name", KINDS)
def test_match_and_search_know_the_words_of_the_schema(spark, tmp_path, name):
    schema = td.Schema({"about": KINDS[name]})
    events = pa.table({"id": [f"e{n}" for n in range(len(TEXTS))], "about": pa.array(TEXTS, pa.string())})
    with td.open(tmp_path / "topic", "news", schema) as topic:
        for id, filter in FILTERS.items():
            topic.subscribe(id, filter)
        topic.flush()
        expected = topic.match_batch(events)
        assert len(expected) > 0
        assert rows_of(match(spark.createDataFrame(events), topic.folder)) == rows_of(expected)
    asked = spark.createDataFrame(pa.table({"id": [*FILTERS], "filter": [*FILTERS.values()]}))
    found = search(asked, spark.createDataFrame(events), schema, snapshot=tmp_path / "snapshot").select(
        "event", "subscription", "score"
    )
    assert rows_of(found) == rows_of(expected)
    build(asked, tmp_path / "built", "news", schema)
    assert rows_of(match(spark.createDataFrame(events), tmp_path / "built")) == rows_of(expected)
    with td.open(tmp_path / "topic") as again:
        assert again.schema == schema
        assert rows_of(again.match_batch(events)) == rows_of(expected)
