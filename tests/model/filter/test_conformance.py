"""OGC's abstract test suite of CQL2 over its own data set: every predicate finds as many features as the standard says."""

from __future__ import annotations

import pytest

import tidings as td
from tests.model.filter.conformance import CITIES, CORRECTED, TABLES, events, fill, judge, schema, suite

pytestmark = pytest.mark.filterwarnings("ignore::tidings.errors.NeverMatchesWarning")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("table", TABLES)
def test_the_standards_own_suite(table: str, packed: bool):
    """Text and JSON, predicates alone and four together, in the memtable and in a segment."""
    topic = td.Topic(table, schema(table))
    fill(topic, table)
    if packed:
        topic.merge()
    judge(table, topic.match_batch(events(table)))


def test_the_three_rows_that_the_data_contradicts():
    names = events(CITIES)["name"].to_pylist()
    assert sorted(name for name in names if name.startswith("Ch")) == ["Chengdu", "Chicago", "Chișinău"]
    assert [row["expected"] for row in suite()["predicates"] if row["predicate"] in CORRECTED] == [2, 2, 2]
    assert (len(suite()["predicates"]), len(suite()["combinations"])) == (274, 83)
