"""The shard of a subscription is the one that Spark's own hash gives it, in which checkpoints have its window."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.spark.samples import SPARK
from tidings.spark.frames.id_hash import even_shards, spark_shards

pytestmark = SPARK


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_shards_are_those_of_sparks_hash(spark, shards):
    rng = np.random.default_rng(5)
    lengths = [*range(70), 100, 300]
    ids = ["".join(chr(code) for code in rng.integers(32, 1_200, length)) for length in lengths]
    table = spark.createDataFrame(pa.table({"id": ids}))
    want = table.select("id", F.pmod(F.xxhash64("id"), F.lit(shards)).alias("shard")).collect()
    sliced = pa.array(["before", *ids])[1:]
    assert spark_shards(sliced, shards).tolist() == [row.shard for row in want]


@pytest.mark.parametrize("partitions", [1, 2, 5, 12])
def test_shards_are_as_even_as_sparks_shuffle_lets_them(spark, partitions):
    place = F.pmod(F.hash(F.col("id").cast("int")), F.lit(partitions)).alias("place")
    places = [row.place for row in spark.range(0, 4 * partitions, 1, 1).select(place).collect()]
    counts = {shards: Counter(places[:shards]) for shards in range(partitions, 4 * partitions + 1)}
    loads = [(max(count.values()) * partitions / shards, shards) for shards, count in counts.items()]
    assert even_shards(partitions) == min(loads)[1]
