"""OGC's abstract test suite of CQL2 through Spark's `match`: the counts, and the answers, of the embedded engine."""

from __future__ import annotations

import pytest

import tidings as td
from tests.model.filter.conformance import TABLES, events, fill, judge, schema
from tests.spark.samples import SPARK
from tidings.spark import match

pytestmark = [*SPARK, pytest.mark.filterwarnings("ignore::tidings.errors.NeverMatchesWarning")]


@pytest.mark.parametrize("table", TABLES)
def test_the_standards_own_suite(spark, tmp_path, table):
    with td.open(tmp_path / table, table, schema(table)) as topic:
        fill(topic, table)
        topic.flush()
        judge(table, match(spark.createDataFrame(events(table)), topic.folder).toArrow())
