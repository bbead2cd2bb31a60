"""A Spark session set up for tidings: the workers' Python is this one, Arrow everywhere, RocksDB for state."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from tidings.errors import StorageError

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PANDAS = "PySpark does not yet fully support pandas"
"""Said of every pandas from 3.0 on; nothing here hands pandas data to Spark."""
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Spark writes rows to Arrow cell by cell; without Arrow's own bounds checks that costs the JVM about a sixth less."""
NO_LIMIT = str(2**31 - 1)
"""Of bytes in an Arrow batch. Under any other Spark adds up the sizes of all columns after each row; rows are limited anyway."""
BATCH_BYTES, BOUNDED = "spark.sql.execution.arrow.maxBytesPerBatch", str(1 << 26)
MOSTLY_DISTINCT = ("event", "subscription")
"""Columns of ids: a Parquet dictionary of them outgrows its page, and looking each one up costs half of writing a match."""
PATIENCE = "120s"
"""For a Python worker to make itself known: under load it takes longer than Spark's 15 seconds to import NumPy, Arrow and pandas.
The worker that a stateful query starts first has ten seconds whatever is set; `runner` starts such a query again."""
SETTINGS = {
    "spark.python.authenticate.socketTimeout": PATIENCE,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    BATCH_BYTES: NO_LIMIT,
    **{f"spark.hadoop.parquet.enable.dictionary#{column}": "false" for column in MOSTLY_DISTINCT},
    "spark.driver.extraJavaOptions": UNCHECKED,
    "spark.executor.extraJavaOptions": UNCHECKED,
    PROVIDER: STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.executorEnv.PYTHONWARNINGS": f"ignore:{PANDAS}:FutureWarning",
}
LOCAL = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}
"""Spark's own 200 partitions would each be a task with Python in it. A cluster's logs and UI are its operators' to set."""


@contextmanager
def bounded_batches(spark: SparkSession) -> Iterator[None]:
    """While rows are few and large. Beyond a gigabyte Spark copies all that it has of a batch at every write."""
    before = spark.conf.get(BATCH_BYTES)
    spark.conf.set(BATCH_BYTES, BOUNDED)
    try:
        yield
    finally:
        spark.conf.set(BATCH_BYTES, before or NO_LIMIT)


def session(name: str = "tidings", master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on `master`; `settings` go over ours. One that runs already is returned.

    >>> from tidings.spark import session
    >>> spark = session("deals", "local[2]")
    >>> spark.range(3).count()
    3
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.filterwarnings("ignore", PANDAS, FutureWarning)
    every = {**SETTINGS, **(LOCAL if master.startswith("local") else {}), **(settings or {})}
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in every.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def is_connect(frame: DataFrame) -> bool:
    """Whether it is of Spark Connect: then what runs on the driver runs in another process, which has only what is sent there."""
    return type(frame).__module__.startswith("pyspark.sql.connect.")


def need_state(frame: DataFrame, transform: str, what: str) -> None:
    """Refuse a session, or a place, in which `transform` cannot keep `what` from one micro-batch to the next."""
    spark = frame.sparkSession
    if frame.isStreaming and spark.conf.get(PROVIDER, None) != STATE_STORE:
        raise StorageError(f"{PROVIDER} is {spark.conf.get(PROVIDER, None)}: {what} as Spark state need {STATE_STORE}")
    if not frame.isStreaming and not is_connect(frame) and spark.sparkContext.getLocalProperty("sql.streaming.queryId"):
        raise StorageError(f"{transform} in foreachBatch forgets its {what} with every batch: give it the stream itself")
