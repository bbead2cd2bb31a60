"""Runs a job: makes the topic if there is none, starts the queries, shows their progress, and reports.

The main query answers; beside it run, if the job has them, the query that follows changes and the one that writes what was refused.
Progress comes from a StreamingQueryListener. Ctrl-C stops after the running micro-batch, also after the first; another one at once,
which loses nothing either: what is not committed runs again with the next start.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time as wall_clock
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console

from tidings.durable.snapshots import snapshots_at
from tidings.spark.frames.session import session
from tidings.spark.job.job_file import GATEWAYS, Job, JobError
from tidings.spark.job.land import Land
from tidings.spark.job.page import write_page
from tidings.spark.job.progress import Listener, Progress
from tidings.spark.job.queries import answers, asked_of, one_sentence, read, refused, to_gateways, write
from tidings.spark.job.report import ALL, report_of
from tidings.spark.job.screen import Screen
from tidings.spark.job.spark_log import errors_into, last_words
from tidings.spark.job.topic_making import ensure_topic, last_name
from tidings.spark.job.warming import SLOW_WORKER, has_run, warm_up
from tidings.spark.transforms.follow import follow

POLL = 0.3
LAST_WORDS = 10.0
"""Seconds to wait for the last report of a query that has ended."""
STARTS = 10
LOG = "spark.log"


@dataclass
class Running:
    job: Job
    main: StreamingQuery
    listener: Listener
    others: list[StreamingQuery] = field(default_factory=list)

    @property
    def queries(self) -> list[StreamingQuery]:
        return [self.main, *self.others]


def run(job: Job, master: str, console: Console, packages: str | None = None, land: Land | None = None) -> Progress:
    """Run the job to its end, or until Ctrl-C. `land` gives the report's map its coasts and borders."""
    begun = wall_clock.monotonic()
    with Screen(console) as screen:
        screen.step(f"starting Spark on {master}")
        spark = start(job, master, packages)
        ready = wall_clock.monotonic()
        screen.step(f"opening the topic in {job.topic.path}")
        ensure_topic(spark, job, screen.say)
        built = wall_clock.monotonic()
        if job.run.warm_up and not has_run(job):
            screen.step("warming up: workers start, kernels are loaded, Java compiles")
            warm_up(spark, job)
        warm = wall_clock.monotonic()
        let_batches_end()
        screen.step("first micro-batch")
        running = launch(spark, job)
        screen.progress = running.listener.progress
        try:
            watch(spark, running, screen)
        finally:
            for query in running.queries:
                query.stop()
            running.listener.ended.wait(LAST_WORDS)
            spark.streams.removeListener(running.listener)
        if not running.listener.progress.batches and Path(job.run.report).exists():
            screen.say(f"nothing came that was not answered before: {job.run.report} stays as it was")
            return running.listener.progress
        screen.step("writing the report")
        ended = wall_clock.monotonic()
        times = {
            "starting Spark": ready - begun,
            "opening the topic": built - ready,
            "warming up": warm - built,
            ALL: ended - begun,
        }
        report = report_of(spark, job, running.listener.progress, times)
        write_page(Path(job.run.report), report, land)
    console.print(report.table())
    console.print(f"[bold]{job.run.report}[/bold] tells who heard what, and why", highlight=False)
    return report.progress


def start(job: Job, master: str, packages: str | None = None) -> SparkSession:
    """Spark on `master`; on this machine its own words go to a file beside the checkpoint."""
    settings = {"spark.sql.streaming.schemaInference": "true", **job.run.settings}
    if packages:
        settings["spark.jars.packages"] = packages
    name = f"tidings {job.answer.kind} {job.topic.path}"
    log = (job.run.folder or Path(tempfile.gettempdir())) / LOG
    if not master.startswith("local"):
        return session(name, master, settings)
    try:
        with errors_into(log):
            return session(name, master, settings)
    except PySparkException as error:
        raise JobError(f"Spark did not start on {master}: {one_sentence(error)}; {log} ends with {last_words(log)!r}") from error


def let_batches_end() -> None:
    """Take back PySpark's answer to Ctrl-C, which is to cancel all running jobs, and with them the micro-batch."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def launch(spark: SparkSession, job: Job) -> Running:
    """Start the job's main query, and listen to it."""
    listener = Listener()
    spark.streams.addListener(listener)
    running = Running(job, start_main(spark, job), listener)
    listener.listen_to(str(running.main.id))
    return running


def called(job: Job, what: str | None = None) -> str:
    """A query's name in Spark's UI and in its progress, as "tidings notify offers"."""
    topic = last_name(job.topic.path) if job.answer.kind == "search" else snapshots_at(job.topic.path).newest().topic
    return f"tidings {what or job.answer.kind} {topic}"


def start_main(spark: SparkSession, job: Job) -> StreamingQuery:
    asked = asked_of(spark, job)
    if job.sink.format == GATEWAYS:
        return to_gateways(asked, job, called(job))
    return write(answers(asked, job), "sink", job.sink, job.run.within("answers"), job, called(job))


def await_first_batch(spark: SparkSession, running: Running) -> None:
    """Start the main query again if its first Python worker was slow: Spark gives it ten seconds, which no setting changes."""
    for _ in range(STARTS):
        while running.main.isActive and not running.listener.progress.batches:
            running.listener.hear(POLL)
        if SLOW_WORKER not in str(running.main.exception()):
            break
        running.main = start_main(spark, running.job)


def launch_others(spark: SparkSession, running: Running) -> None:
    """Start the queries beside it, once its first micro-batch has Spark's new Python workers running."""
    job = running.job
    await_first_batch(spark, running)
    if job.changes is not None:
        changes = read(spark, "changes", job.changes, streaming=True)
        name, trigger = called(job, "follow"), job.run.spark_trigger
        running.others.append(
            follow(changes, job.topic.path, job.run.within("changes"), on_error="skip", trigger=trigger, name=name)
        )
    if job.refused is not None:
        told = refused(asked_of(spark, job), job)
        running.others.append(write(told, "refused", job.refused, job.run.within("refused"), job, called(job, "refuse")))


def watch(spark: SparkSession, running: Running, screen: Screen) -> None:
    """Show the progress until the main query ends; Ctrl-C waits for its running micro-batch."""
    listener = running.listener
    try:
        launch_others(spark, running)
        screen.step("micro-batches")
        while running.main.isActive:
            listener.hear(POLL)
            raise_failures(running)
            screen.draw()
    except KeyboardInterrupt:
        screen.say("stopping after the running micro-batch")
        finished = last_finished(running.main)
        while running.main.isActive and running.main.status["isTriggerActive"] and last_finished(running.main) == finished:
            listener.hear(POLL)
        running.main.stop()
    listener.ended.wait(LAST_WORDS)
    screen.draw()
    raise_failures(running)
    for query in running.others:
        if "availableNow" in running.job.run.spark_trigger:
            query.awaitTermination()


def last_finished(query: StreamingQuery) -> int:
    """The number of the query's newest finished micro-batch: asked of the query, since a listener hears of it later."""
    report = query.lastProgress
    return -1 if report is None else int(report["batchId"])


def raise_failures(running: Running) -> None:
    for query in running.queries:
        failure = query.exception()
        if failure is not None:
            raise JobError(one_sentence(failure)) from failure
