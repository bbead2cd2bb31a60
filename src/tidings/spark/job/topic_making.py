"""The topic of a job: made from [subscriptions] if there is none, and what is said if the job has changed since.

[subscriptions] is read once. What it said then stands in the checkpoint, so that a later edit, which would do nothing, is refused
with what to do; files that have changed beneath it are told of. The topic's schema is the topic's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidings.durable.snapshots import holds_topic, snapshots_at
from tidings.spark.frames.topic_view import form_view
from tidings.spark.job.job_file import Job, JobError, Source
from tidings.spark.job.queries import read
from tidings.spark.transforms.build import build

MADE = "made.json"


def ensure_topic(spark: SparkSession, job: Job, say: Callable[[str], None]) -> None:
    if job.answer.kind == "search":
        return
    if holds_topic(job.topic.path):
        notice_edits(job, say)
        return
    make_topic(spark, job, job.topic.path)
    record = record_of(job)
    if record is not None:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(made_from(job)))


def record_of(job: Job) -> Path | None:
    """Where it stands what the topic was made from; nowhere if the checkpoint is at a URL."""
    return None if job.run.folder is None else job.run.folder / MADE


def last_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def make_topic(spark: SparkSession, job: Job, folder: str, most: int | None = None) -> int:
    """The topic of [subscriptions], or of `most` of them, in `folder`; how many there are."""
    schema = job.topic.schema_given
    if job.subscriptions is None or schema is None:
        raise JobError(f"{folder} holds no topic; to make one the job needs topic.schema and [subscriptions]")
    found = read(spark, "subscriptions", job.subscriptions)
    return build(
        found if most is None else found.limit(most), folder, job.topic.name or last_name(job.topic.path), schema, key=job.topic.key
    )


def notice_edits(job: Job, say: Callable[[str], None]) -> None:
    """Refuse an edit that would do nothing, and say which part of the job is not read any more."""
    folder = job.topic.path
    anew = f"remove {folder} and {job.run.checkpoint} to begin anew"
    view = form_view(snapshots_at(folder))
    if job.topic.schema_given is not None and job.topic.schema_given != view.schema:
        raise JobError(f"topic.schema differs from that of the topic in {folder}: put it back, or {anew}")
    if job.topic.key is not None and job.topic.key != view.key:
        raise JobError(f"topic.key is {job.topic.key!r}, and {view.key!r} in {folder}: put it back, or {anew}")
    if job.subscriptions is None:
        return
    record = record_of(job)
    if record is None or not record.exists():
        say(f"[subscriptions] is not read: {folder} holds a topic that another made")
        return
    then, now = json.loads(record.read_text()), made_from(job)
    if then["source"] != now["source"]:
        changed = ", ".join(name for name in now["source"] if now["source"][name] != then["source"].get(name))
        raise JobError(
            f"[subscriptions] has another {changed} than when {folder} was made from it, and is read only then: put it back and "
            f"send what is new through [changes], or {anew}"
        )
    if then["files"] != now["files"]:
        say(f"the files of [subscriptions] have changed since {folder} was made from them, and are not read again: {anew}")


def made_from(job: Job) -> dict[str, Any]:
    """What [subscriptions] says, and the files that it names as they are now."""
    assert job.subscriptions is not None
    return {"source": job.subscriptions.model_dump(mode="json", by_alias=True), "files": files_of(job.subscriptions)}


def files_of(source: Source) -> list[list[str | int]]:
    """Name, size and time of the local files below a source's path."""
    root = Path(source.options.get("path", "").removeprefix("file://"))
    below = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in below if path.is_file()]
