"""`match`: a DataFrame of events in, a row for every match out (`match_task` has the columns); topics in one folder or in parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.durable.manifest_view import View
from tidings.durable.snapshots import LakeSnapshots, Snapshots, snapshots_at
from tidings.errors import EventError, SchemaError
from tidings.model.door.subscription import read_k
from tidings.spark.frames.answer_columns import REASON
from tidings.spark.frames.arrow_stage import Stage
from tidings.spark.frames.match_task import NAMED, MatchTask
from tidings.spark.frames.matching import Matching, remember
from tidings.spark.frames.metrics import MANIFEST, called, observed, titled
from tidings.spark.frames.parquet_files import form_of, frame_of, given_by, map_given
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.topic_view import check_events, event_columns, planned_view
from tidings.spark.parts.match_parts import fanned_out, in_place


def match(
    events: DataFrame | str | os.PathLike[str],
    topic: str | os.PathLike[str],
    k: int | None = None,
    relaxed: bool = False,
    aggregate: str = "sum",
    *,
    corrupt: bool = False,
    ranking: bool = False,
    carry: Sequence[str] = (),
) -> DataFrame:
    """Who should hear of each event, by the subscriptions of the topic at path or URL `topic`; batch or streaming.

    `events` may also be the path of Parquet files that every worker can open; then the workers read them (`parquet_files`). Columns
    that are no attribute of the topic are ignored; those named in `carry` stand in the matches of their event.

    >>> import tidings as td
    >>> with td.open(folder, "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.subscribe("ann", "price < 5", k=1, window="1 hour", by="-price", time=0)
    >>> events = spark.createDataFrame([("e1", 4.0, 60), ("e2", 3.0, 120)], "id string, price double, seconds long")
    >>> events = events.selectExpr("id", "price", "timestamp_seconds(seconds) AS time")
    >>> from tidings.spark import match
    >>> sorted((row.event, row.subscription) for row in match(events, folder).collect())
    [('e1', 'ann'), ('e2', 'ann')]
    """
    place = snapshots_at(topic)
    if ranking and (k is not None or relaxed):
        raise EventError("ranking=True keeps every match for notify: it takes neither k nor relaxed")
    task = MatchTask(place, Pin(0, 0), None if k is None else read_k(k), relaxed, aggregate, corrupt, ranking)
    given = given_by(events)
    form = form_of(given)
    streaming = isinstance(given, DataFrame) and given.isStreaming
    pin, view = planned_view(place, streaming)
    task = replace(task, pin=pin, carried=carried(form, carry, task), metered=streaming)
    only, name = taken(form, view, carry), called("match", place)
    stage = stage_of(place, task)
    found = fanned_out(frame_of(given), place, task, only) if stage is None else map_given(given, stage, task.columns, only, name)
    title = titled(name) if streaming else name
    if streaming:
        refused = {"refused": F.count(REASON)} if corrupt else {}
        found = observed(found, title, matched=F.count("subscription"), **refused, manifest=F.max(MANIFEST)).drop(MANIFEST)
    if ranking and (plain := stage_of(place, replace(task, metered=False))) is not None:
        remember(found, Matching(given, plain, only, place, title, corrupt))
    return found


def stage_of(place: Snapshots, task: MatchTask) -> Stage | None:
    """What a task does with its events; None where each part has tasks of its own."""
    if isinstance(place, LakeSnapshots) and place.manifest(task.pin.manifest, task.pin.identity).cut is not None:
        return in_place(place, task)
    return task


def taken(form: pa.Schema, view: View, carry: Sequence[str]) -> list[str]:
    """The columns that the task needs, checked against the topic."""
    known = event_columns(view)
    own = [name for name in form.names if name in known]
    id_field = view.key or "id"
    if id_field not in own:
        raise SchemaError(f"events have no column {id_field!r}: {NAMED}")
    if not any(name in view.schema for name in own):
        raise SchemaError(f"events have {', '.join(form.names)}: at least one attribute is accepted, of {', '.join(view.schema)}")
    check_events(pa.schema([form.field(name) for name in own]), view)
    return [name for name in form.names if name in own or name in carry or name == REASON]


def carried(form: pa.Schema, carry: Sequence[str], task: MatchTask) -> tuple[tuple[str, pa.DataType], ...]:
    for name in carry:
        if name not in form.names:
            raise SchemaError(f"carry has {name!r}: a column of the events is accepted, of {', '.join(form.names)}")
        if name in task.columns:
            raise SchemaError(f"carry has {name!r}, which matches have as a column of their own: carry it under another name")
    return tuple((name, form.field(name).type) for name in dict.fromkeys(carry))
