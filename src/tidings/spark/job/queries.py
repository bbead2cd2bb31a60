"""What a job's queries are made of: sources, answers, sinks. A refusal of Spark becomes a sentence that names the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from tidings.spark.frames.answer_columns import REASON
from tidings.spark.frames.metrics import observed, titled
from tidings.spark.job.job_file import Job, JobError, Source
from tidings.spark.transforms.board import board
from tidings.spark.transforms.match import match
from tidings.spark.transforms.notify import notify
from tidings.spark.transforms.paint import paint
from tidings.spark.transforms.parse import parse
from tidings.spark.transforms.search import search

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"


def one_sentence(failure: Exception) -> str:
    """What went wrong, without the traces: tidings' own sentence if a worker raised one, else the first line."""
    lines = [line for line in str(failure).splitlines() if line.strip()] or [type(failure).__name__]
    ours = [line for line in lines if line.startswith("tidings.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]


@contextmanager
def told_of(name: str, source: Source) -> Iterator[None]:
    """Spark's refusal of a source or sink, in a sentence that names its table."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        sentence = one_sentence(error)
        if "DATA_SOURCE_NOT_FOUND" in str(error) or "Failed to find" in sentence:
            sentence = f"Spark knows none; one that a connector brings needs --packages, as {CONNECTOR}"
        raise JobError(f"[{name}] with format {source.format!r}: {sentence}") from error


def read(spark: SparkSession, name: str, source: Source, streaming: bool = False) -> DataFrame:
    with told_of(name, source):
        reader: Any = (spark.readStream if streaming else spark.read).format(source.format).options(**source.options)
        if source.columns is not None:
            reader = reader.schema(source.columns)
        return reader.load()


def asked_of(spark: SparkSession, job: Job, streaming: bool = True, topic: str | None = None) -> DataFrame:
    """What comes in: events, parsed if they are JSON, or searches."""
    name = "searches" if job.answer.kind == "search" else "events"
    raw = read(spark, name, job.asked, streaming)
    return parse(raw, topic or job.topic.path) if job.asked.value == "json" else raw


def answers(asked: DataFrame, job: Job, topic: str | None = None) -> DataFrame:
    """The job's rows: notifications, matches or what was found; what was refused is counted and left out."""
    answer, folder = job.answer, topic or job.topic.path
    if answer.kind in ("board", "messages"):
        return board(updates_of(asked), folder, answer.shards, messages=answer.kind == "messages", families=answer.families)
    if answer.kind == "search":
        return readable(search(asked, folder, corrupt=True))
    if answer.kind == "match":
        return readable(match(asked, folder, answer.k, answer.relaxed, answer.aggregate, corrupt=True))
    return notify(match(asked, folder, corrupt=True, ranking=True), folder, answer.shards, answer.delay)


def updates_of(asked: DataFrame) -> DataFrame:
    """What a board takes; what was refused is counted and left out."""
    if REASON not in asked.columns:
        return asked
    return readable(observed(asked, titled("tidings parse"), refused=F.count(REASON)))


def readable(rows: DataFrame) -> DataFrame:
    """Those that were not refused."""
    return rows.where(F.col(REASON).isNull()).drop(REASON)


def refused(asked: DataFrame, job: Job) -> DataFrame:
    """What cannot be read: its id, as far as it has one, and the reason."""
    if job.answer.kind == "search":
        every = search(asked, job.topic.path, corrupt=True).select("subscription", REASON)
    else:
        every = match(asked, job.topic.path, k=0, corrupt=True).select("event", REASON)
    return every.where(F.col(REASON).isNotNull())


def to_gateways(asked: DataFrame, job: Job, called: str) -> StreamingQuery:
    """Start the query that paints for gateways."""
    how = job.sink.options
    return paint(
        updates_of(asked),
        job.topic.path,
        job.run.within("answers"),
        brokers=how["brokers"],
        families=job.answer.families,
        zones=int(how.get("zones", 8)),
        sparse=how.get("sparse") == "true",
        trigger=job.run.spark_trigger,
        name=called,
    )


def write(frame: DataFrame, name: str, sink: Source, checkpoint: str, job: Job, called: str) -> StreamingQuery:
    """Start the query that writes `frame`; it has this name in Spark's UI and in its progress."""
    trigger = job.run.spark_trigger
    if sink.format == "kafka":
        key = next(name for name in ("subscription", "event", "family") if name in frame.columns)
        frame = frame.select(F.col(key).alias("key"), F.to_json(F.struct("*")).alias("value"))
    with told_of(name, sink):
        writer = frame.writeStream.format(sink.format).options(**sink.options).queryName(called)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
