"""A topic's subscriptions as the driver plans with them and as a task reads them: the one place that opens views."""

from __future__ import annotations

import pyarrow as pa

from tidings.durable.lake.objects import MissingObject
from tidings.durable.manifest_view import View
from tidings.durable.snapshots import Snapshots, view_of
from tidings.errors import EventError, SchemaError, StorageError
from tidings.model.columns.tables import arrow_schema
from tidings.spark.frames.pins import Pin, current, frame_pin, micro_batch, newest

NOBODY = -1
"""The part in which nobody stands: of a lake, what a driver plans with, schema and codes, without fetching a segment."""


def planned_view(topic: Snapshots, streaming: bool) -> tuple[Pin, View]:
    """The newest manifest and its form: what a transform is planned with. A batch DataFrame reads it whenever it runs."""
    pin = newest(topic) if streaming else frame_pin(topic)
    return pin, view_of(topic, pin.manifest, NOBODY, pin.identity)


def form_view(topic: Snapshots) -> View:
    """For whoever needs schema and key alone."""
    newest = topic.newest()
    return view_of(topic, newest.number, NOBODY, newest.identity)


def task_view(topic: Snapshots, otherwise: Pin, part: int | None = None) -> tuple[View, int]:
    """The view and the instant of the micro-batch that this task is of; those of `otherwise` in a batch query."""
    pin = current(topic, otherwise)
    return view_at(topic, pin.manifest, part, pin.identity), pin.time


def view_at(topic: Snapshots, manifest: int, part: int | None = None, identity: int = 0) -> View:
    try:
        return view_of(topic, manifest, part, identity)
    except StorageError as error:
        if isinstance(error.__cause__, MissingObject):
            raise StorageError(f"{error}; {what_to_do()}") from error
        raise


def what_to_do() -> str:
    where = micro_batch()
    if where is None:
        return "the lease of this DataFrame has ended: make it anew"
    return (
        f"the lease of this query's micro-batch {where[1]} has ended: tidings.spark.adopt(topic, checkpoint) lets it go on with "
        "what is there now"
    )


def event_columns(view: View) -> list[str]:
    """The columns that this topic's events may have."""
    return list(arrow_schema(view.schema, view.key).names)


def check_events(form: pa.Schema, view: View) -> None:
    """Refuse, before anything runs, events whose columns the topic cannot read."""
    try:
        view.read(form.empty_table())
    except EventError as error:
        raise SchemaError(f"these events do not fit topic {view.manifest.topic!r} in {view.title}: {error}") from error
