"""Warming up: some events through the whole plan to nowhere, so that the first micro-batch finds all that it needs ready."""

from __future__ import annotations

import shutil

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tidings.durable.leases import PINS
from tidings.durable.snapshots import snapshots_at
from tidings.spark.job.job_file import Job, JobError, Source
from tidings.spark.job.queries import answers, asked_of, one_sentence, read

SLOW_WORKER = "Python worker failed to connect back"
EVENTS = 2000


def has_run(job: Job) -> bool:
    """Whether a micro-batch of the job was finished before. A restart is not warmed up: it would wait for the same work twice."""
    assert job.run.folder is not None, "checked when the job was read"
    return any((job.run.folder / "answers" / "commits").glob("[0-9]*"))


def warm_up(spark: SparkSession, job: Job) -> None:
    """Run the job's plan over a copy of some of its events; what it pins and keeps is removed again."""
    assert job.run.folder is not None, "checked when the job was read"
    aside = job.run.folder / "warm-up"
    shutil.rmtree(aside, ignore_errors=True)
    few = read(spark, "events", job.asked).limit(EVENTS)
    few.write.parquet(str(aside / "events"))
    copy = Source(format="parquet", options={"path": str(aside / "events")}, value=job.asked.value)
    name = "searches" if job.answer.kind == "search" else "events"
    rows = answers(asked_of(spark, job.model_copy(update={name: copy})), job)
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(aside / "checkpoint"))
    query = writer.trigger(availableNow=True).queryName(f"tidings warm-up {job.topic.path}").start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if SLOW_WORKER not in str(error):
            raise JobError(one_sentence(error)) from error
    finally:
        query.stop()
        notes = snapshots_at(job.topic.path).notes
        notes.delete([pin.name for pin in notes.listed(f"{PINS}/{query.id}/")])
        shutil.rmtree(aside, ignore_errors=True)
