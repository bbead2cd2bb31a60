"""Runs a job: makes the topic if there is none, starts the queries, shows their progress, and reports.

The main query matches and notifies; beside it run, if the job has them, the query that follows changes and the one that writes what
was refused. Progress comes from a StreamingQueryListener. Ctrl-C stops after the running micro-batch; another one at once, which
loses nothing either: what is not committed runs again with the next start.
"""

from __future__ import annotations

import signal
import threading
import time as wall_clock
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console
from rich.live import Live

from tidings.durable.snapshots import holds_topic, newest_view, snapshots_at
from tidings.errors import TidingsError
from tidings.spark.frames.session import session
from tidings.spark.job.job_file import Job, JobError, Source
from tidings.spark.job.progress import Listener, Progress, shown
from tidings.spark.job.report import Report, write_report
from tidings.spark.transforms.build import build
from tidings.spark.transforms.follow import follow
from tidings.spark.transforms.match import match
from tidings.spark.transforms.notify import notify
from tidings.spark.transforms.parse import parse

POLL = 0.3
LAST_WORDS = 10.0
"""Seconds to wait for the last report of a query that has ended."""
STARTS = 3
SLOW_WORKER = "Python worker failed to connect back"


@dataclass
class Running:
    job: Job
    main: StreamingQuery
    listener: Listener
    others: list[StreamingQuery] = field(default_factory=list)

    @property
    def progress(self) -> Progress:
        return self.listener.progress

    @property
    def queries(self) -> list[StreamingQuery]:
        return [self.main, *self.others]


def run(job: Job, master: str, console: Console, packages: str | None = None) -> Progress:
    """Run the job to its end, or until Ctrl-C."""
    spark = start(job, master, packages)
    begun = wall_clock.monotonic()
    ensure_topic(spark, job, console)
    let_batches_end()
    running = launch(spark, job)
    try:
        launch_others(spark, running)
        watch(running, console)
    finally:
        for query in running.queries:
            query.stop()
        running.listener.ended.wait(LAST_WORDS)
        spark.streams.removeListener(running.listener)
    took = wall_clock.monotonic() - begun
    report = report_of(spark, running, took)
    write_report(Path(job.run.report), report)
    console.print(report.table())
    console.print(f"[bold]{job.run.report}[/bold] has the charts")
    return running.progress


def start(job: Job, master: str, packages: str | None = None) -> SparkSession:
    settings = {"spark.sql.streaming.schemaInference": "true", **job.run.settings}
    if packages:
        settings["spark.jars.packages"] = packages
    try:
        return session(f"tidings {job.topic.path}", master, settings)
    except PySparkException as error:
        raise JobError(f"Spark did not start on {master}, see above: {one_sentence(error)}") from error


def ensure_topic(spark: SparkSession, job: Job, console: Console) -> None:
    """Build the topic from [subscriptions] if the folder holds none."""
    folder = job.topic.path
    if holds_topic(folder):
        return
    if job.subscriptions is None or job.schema is None:
        raise JobError(f"{folder} holds no topic; to make one the job needs topic.schema and [subscriptions]")
    begun = wall_clock.monotonic()
    count = build(
        read(spark, job.subscriptions),
        folder,
        job.topic.name or folder.rstrip("/").rpartition("/")[2],
        job.schema,
        key=job.topic.key,
    )
    console.print(f"built {folder} of {count:,} subscriptions in {wall_clock.monotonic() - begun:.1f} s")


def read(spark: SparkSession, source: Source, streaming: bool = False) -> DataFrame:
    reader: Any = (spark.readStream if streaming else spark.read).format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load()


def events_of(spark: SparkSession, job: Job, streaming: bool = True) -> DataFrame:
    raw = read(spark, job.events, streaming)
    return parse(raw, job.topic.path) if job.events.value == "json" else raw


def answers(events: DataFrame, job: Job) -> DataFrame:
    """The job's rows: notifications, or matches; what was refused is counted and left out."""
    answer, topic = job.answer, job.topic.path
    if answer.kind == "match":
        every = match(events, topic, answer.k, answer.relaxed, answer.aggregate, corrupt=True)
    else:
        every = match(events, topic, corrupt=True, ranking=True)
    counted = every.observe("matched", F.count("subscription").alias("matches"), F.count("_corrupt").alias("refused"))
    good = counted.where("_corrupt IS NULL").drop("_corrupt")
    result = good if answer.kind == "match" else notify(good, topic, answer.shards, answer.delay)
    return result.observe("told", F.count(F.lit(1)).alias("notifications"))


def let_batches_end() -> None:
    """Take back PySpark's answer to Ctrl-C, which is to cancel all running jobs, and with them the micro-batch."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def launch(spark: SparkSession, job: Job) -> Running:
    """Start the job's main query, and listen to it."""
    listener = Listener()
    spark.streams.addListener(listener)
    main = start_main(spark, job)
    listener.listen_to(str(main.id))
    return Running(job, main, listener)


def start_main(spark: SparkSession, job: Job) -> StreamingQuery:
    return write(answers(events_of(spark, job), job), job.sink, Path(job.run.checkpoint) / "answers", job.trigger)


def await_first_batch(spark: SparkSession, running: Running) -> None:
    """Start the main query again if its first Python worker was slow: Spark gives it ten seconds, which no setting changes."""
    for _ in range(STARTS):
        while running.main.isActive and not running.progress.batches:
            running.listener.hear(POLL)
        if SLOW_WORKER not in str(running.main.exception()):
            break
        running.main = start_main(spark, running.job)


def launch_others(spark: SparkSession, running: Running) -> None:
    """Start the queries beside it, once its first micro-batch has Spark's new Python workers running."""
    job, checkpoint = running.job, Path(running.job.run.checkpoint)
    await_first_batch(spark, running)
    if job.changes is not None:
        changes = read(spark, job.changes, streaming=True)
        running.others.append(follow(changes, job.topic.path, checkpoint / "changes", on_error="skip", trigger=job.trigger))
    if job.refused is not None:
        every = match(events_of(spark, job), job.topic.path, k=0, corrupt=True)
        told = every.where("_corrupt IS NOT NULL").select("event", "_corrupt")
        running.others.append(write(told, job.refused, checkpoint / "refused", job.trigger))


def write(frame: DataFrame, sink: Source, checkpoint: Path, trigger: dict[str, Any]) -> StreamingQuery:
    if sink.format == "kafka":
        key = "subscription" if "subscription" in frame.columns else "event"
        frame = frame.select(F.col(key).alias("key"), F.to_json(F.struct("*")).alias("value"))
    mode = "update" if "realTime" in trigger else "append"
    writer = frame.writeStream.format(sink.format).options(**sink.options).outputMode(mode)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()


def watch(running: Running, console: Console) -> None:
    """Show the progress until the main query ends; Ctrl-C waits for its running micro-batch."""
    listener = running.listener
    with Live(shown(running.progress), console=console, refresh_per_second=4, transient=not console.is_terminal) as live:
        try:
            while running.main.isActive:
                listener.hear(POLL)
                raise_failures(running)
                live.update(shown(running.progress))
        except KeyboardInterrupt:
            console.print("stopping after the running micro-batch")
            finished = listener.finished
            while running.main.isActive and running.main.status["isTriggerActive"] and listener.finished == finished:
                listener.hear(POLL)
            running.main.stop()
        listener.ended.wait(LAST_WORDS)
        live.update(shown(running.progress))
    raise_failures(running)
    for query in running.others:
        if "availableNow" in running.job.trigger:
            query.awaitTermination()


def raise_failures(running: Running) -> None:
    for query in running.queries:
        failure = query.exception()
        if failure is not None:
            raise JobError(one_sentence(failure)) from failure


def one_sentence(failure: PySparkException) -> str:
    """What went wrong, without the traces: tidings' own sentence if a worker raised one, else the first line."""
    lines = str(failure).splitlines()
    ours = [line for line in lines if line.startswith("tidings.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]


def report_of(spark: SparkSession, running: Running, took: float) -> Report:
    job = running.job
    view = newest_view(snapshots_at(job.topic.path))
    top, events = [], None
    try:
        found = read(spark, Source(job.sink.format, job.sink.options))
        counted = found.groupBy("subscription").count().orderBy(F.desc("count"), "subscription").limit(10)
        top = [(row["subscription"], row["count"]) for row in counted.collect()]
        if view.schema.place is not None:
            events = events_of(spark, job, streaming=False).select(view.schema.place).limit(3000).toArrow()
    except (PySparkException, TidingsError):
        top = top or []
    return Report(view.manifest.topic, len(view), took, running.progress, top, view, events)


def dry_run(job: Job, master: str, console: Console, packages: str | None = None) -> None:
    """What the job would do: plan, columns, and how many rows a sample of the events gives. Writes nothing but a new topic."""
    spark = start(job, master, packages)
    ensure_topic(spark, job, console)
    static = events_of(spark, job, streaming=False)
    sample = static.limit(1000)
    console.print("events:", static.schema.simpleString())
    result = answers(sample, job)
    console.print("answers:", result.schema.simpleString())
    console.print(f"a sample of {sample.count():,} events gives {result.count():,} rows")
    result.explain()
