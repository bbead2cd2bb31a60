"""`match`: a DataFrame of events in, a row for every match out (`matcher` has the columns); a topic in one folder or in parts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from tidings.durable.manifest_view import view_of
from tidings.errors import EventError
from tidings.model.door.subscription import read_k
from tidings.spark.frames.columns import check_events
from tidings.spark.frames.matcher import Matcher
from tidings.spark.frames.parquet_files import form_of, frame_of, given_by, map_given
from tidings.spark.frames.pins import PARTS, Pin, newest, refuse_parts
from tidings.spark.parts.matching import match_parts


def match(
    events: DataFrame | str | os.PathLike[str],
    topic: str | os.PathLike[str],
    k: int | None = None,
    relaxed: bool = False,
    aggregate: str = "sum",
    *,
    corrupt: bool = False,
    ranking: bool = False,
) -> DataFrame:
    """Who should hear of each event, by the subscriptions of the topic at path `topic`; batch or streaming.

    `events` may also be the path of Parquet files that every worker can open; then the workers read them (`files`).
    """
    folder = Path(topic).absolute()
    if ranking and (k is not None or relaxed):
        raise EventError("ranking=True keeps every match for notify: it takes neither k nor relaxed")
    matcher = Matcher(folder, Pin(0, 0), None if k is None else read_k(k), relaxed, aggregate, corrupt, ranking)
    given = given_by(events)
    if (folder / PARTS).exists():
        if ranking:
            refuse_parts(folder)
        return match_parts(frame_of(given), folder, matcher)
    matcher = replace(matcher, pin=newest(folder))
    check_events(form_of(given), view_of(folder, matcher.pin.manifest))
    return map_given(given, matcher, matcher.columns)
