"""A topic's subscriptions as the driver plans with them and as a task reads them: the one place that opens views."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tidings.durable.manifest_view import View, view_of
from tidings.errors import EventError, SchemaError
from tidings.model.columns.tables import arrow_schema
from tidings.spark.frames.pins import Pin, current, newest


def newest_view(folder: Path) -> tuple[Pin, View]:
    """The newest manifest, pinned, and its view: what a transform is planned with."""
    pin = newest(folder)
    return pin, view_of(folder, pin.manifest)


def task_view(folder: Path, otherwise: Pin) -> tuple[View, int]:
    """The view and the instant of the micro-batch that this task is of; those of `otherwise` in a batch query."""
    pin = current(folder, otherwise)
    return view_of(folder, pin.manifest), pin.time


def view_at(folder: Path, manifest: int) -> View:
    return view_of(folder, manifest)


def event_columns(view: View) -> list[str]:
    """The columns that this topic's events may have."""
    return list(arrow_schema(view.schema, view.key).names)


def check_events(form: pa.Schema, view: View) -> None:
    """Refuse, before anything runs, events whose columns the topic cannot read."""
    try:
        view.read(form.empty_table())
    except EventError as error:
        raise SchemaError(f"these events do not fit topic {view.manifest.topic!r} in {view.folder}: {error}") from error
