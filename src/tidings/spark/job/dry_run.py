"""`tidings run --dry-run`: what a job would do, from a sample, without writing anything of it.

Where the topic is not there yet it is made in a folder of its own, from at most SUBSCRIPTIONS, and removed again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from tidings.durable.snapshots import holds_topic, newest_view, snapshots_at
from tidings.spark.job.job_file import Job
from tidings.spark.job.queries import answers, asked_of
from tidings.spark.job.runner import start
from tidings.spark.job.stories import explained
from tidings.spark.job.topic_making import make_topic, notice_edits

SUBSCRIPTIONS = 100_000
SAMPLE = 1000
ROWS = 10


def dry_run(job: Job, master: str, console: Console, packages: str | None = None) -> None:
    """Columns, what a sample of events gives, and ten of its rows with the reason for each."""
    with tempfile.TemporaryDirectory(prefix="tidings-") as aside:
        logged = job.model_copy(update={"run": job.run.model_copy(update={"checkpoint": aside})})
        spark = start(logged, master, packages)
        folder = job.topic.path
        if job.answer.kind != "search" and holds_topic(folder):
            notice_edits(job, lambda what: said(console, what))
        elif job.answer.kind != "search":
            folder = str(Path(aside) / "topic")
            count = make_topic(spark, job, folder, SUBSCRIPTIONS)
            said(console, f"{job.topic.path} would be made of [subscriptions]; {count:,} of them were tried")
        show(spark, job, folder, console)


def show(spark: SparkSession, job: Job, folder: str, console: Console) -> None:
    asked = asked_of(spark, job, streaming=False, topic=folder)
    sample = asked.limit(SAMPLE).cache()
    result = answers(sample, job, folder).cache()
    said(console, f"comes in: {asked.schema.simpleString()}")
    said(console, f"goes out: {result.schema.simpleString()}")
    said(console, f"a sample of {sample.count():,} gives {result.count():,} rows")
    rows = [row.asDict() for row in result.limit(ROWS).collect()]
    reasons = [""] * len(rows)
    if job.answer.kind != "search":
        reasons = ["; ".join(told.held) for told in explained(rows, sample, newest_view(snapshots_at(folder)))]
    console.print(drawn(result.columns, rows, reasons))


def drawn(columns: list[str], rows: list[dict[str, object]], reasons: list[str]) -> Table:
    table = Table("subscription", "event", *(name for name in ("why", "score") if name in columns), "because")
    for row, reason in zip(rows, reasons, strict=True):
        cells = [str(row[name]) for name in ("subscription", "event", "why", "score") if name in columns]
        table.add_row(*(cell.replace("[", r"\[") for cell in (*cells, reason)))
    return table


def said(console: Console, what: str) -> None:
    console.print(what, markup=False, highlight=False, soft_wrap=True)
