"""The report of a run: its figures, warm ones and the warm-up apart, what there is to tell, and where and by what it was made."""

from __future__ import annotations

import os
import platform
import time as wall_clock
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.table import Table

from tidings.durable.manifest_view import View
from tidings.durable.snapshots import newest_view, snapshots_at
from tidings.errors import TidingsError
from tidings.spark.job.job_file import Job
from tidings.spark.job.progress import Progress, summed
from tidings.spark.job.queries import one_sentence
from tidings.spark.job.stories import Stories, stories_of

ALL = "the whole run"
UNTOLD = "What a search found is at its sink."
NAMED = ("tidings", "pyspark", "pyarrow", "numpy", "numba")


@dataclass(frozen=True)
class Report:
    """`view` is None for a search; `times` are seconds by what took them; `made` says when, where and with what."""

    topic: str
    kind: str
    progress: Progress
    times: Mapping[str, float]
    view: View | None
    stories: Stories
    made: Mapping[str, str]

    def counts(self) -> dict[str, str]:
        total = self.progress.total
        known = {} if self.view is None else {"subscriptions": len(self.view)}
        counted = {"events": total.events, "matches": total.matches, "notifications": total.notifications, "refused": total.refused}
        return {name: f"{count:,}" for name, count in (known | counted | {"micro-batches": total.number}).items()}

    def warm(self) -> dict[str, str]:
        """Of the later half of the micro-batches."""
        batches = self.progress.warm
        if not batches:
            return {}
        total, seconds = summed(batches), [batch.seconds for batch in batches]
        return {
            "events a second": f"{total.rate(total.events):,.0f}",
            "matches a second": f"{total.rate(total.matches):,.0f}",
            "micro-batch, median": f"{np.median(seconds):.2f} s",
            "micro-batch, slowest": f"{max(seconds):.2f} s",
        }

    def warm_up(self) -> dict[str, str]:
        taken = {name: seconds for name, seconds in self.times.items() if name != ALL}
        if self.progress.batches:
            taken["first micro-batch"] = self.progress.all[0].seconds
        return {name: f"{seconds:.2f} s" for name, seconds in taken.items()}

    def table(self) -> Table:
        table = Table(title=f"topic {self.topic}", title_justify="left", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        parts = {"": self.counts(), "once warm (later half)": self.warm(), "warm-up": self.warm_up()}
        for title, figures in parts.items():
            table.add_section()
            if title:
                table.add_row(f"[bold]{title}[/bold]", "")
            for name, figure in figures.items():
                table.add_row(f"  {name}" if title else name, figure)
        table.add_section()
        table.add_row("the whole run", f"{self.times[ALL]:.1f} s")
        return table


def report_of(spark: SparkSession, job: Job, progress: Progress, times: Mapping[str, float]) -> Report:
    view = None if job.answer.kind == "search" else newest_view(snapshots_at(job.topic.path))
    try:
        stories = Stories(silent=UNTOLD) if view is None else stories_of(spark, job, view)
    except (PySparkException, TidingsError) as error:
        stories = Stories(silent=f"The sink or the source could not be read again: {one_sentence(error)}")
    topic = job.topic.path if view is None else view.manifest.topic
    return Report(topic, job.answer.kind, progress, times, view, stories, made_by(spark))


def made_by(spark: SparkSession) -> dict[str, str]:
    java = spark.sparkContext._jvm.System.getProperty("java.version")
    when = datetime.fromtimestamp(wall_clock.time(), UTC)
    with_what = [f"{name} {version(name)}" for name in NAMED] + [f"Python {platform.python_version()}", f"Java {java}"]
    where = f"{spark.sparkContext.master} on {platform.system()} {platform.machine()} with {os.cpu_count()} cores"
    return {"made": f"{when:%Y-%m-%d %H:%M} UTC", "with": ", ".join(with_what), "on": where}
