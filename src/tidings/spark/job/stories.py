"""Who heard what, and why: some notifications of a run with their explanation, and one subscription's list over time.

Told from the sink's files and the events', where both are files of this machine and small enough to be read again; a subscription
is explained as it stands at the end of the run.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.durable.manifest_view import View
from tidings.match.answers.explain import explain_pair
from tidings.match.answers.results import instant
from tidings.model.columns.arrays import encode_events
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.spark.frames.topic_view import event_columns
from tidings.spark.job.job_file import Job, Source
from tidings.spark.job.job_reading import FILES
from tidings.spark.job.queries import asked_of, read
from tidings.topic.topic import Topic

READ_AGAIN = 1 << 30
"""Bytes of files that are read again for the sake of a story."""
OF_EACH = 2
KINDS = ("matched", "entered", "promoted", "updated", "left")
SPANS = 60


@dataclass(frozen=True, slots=True)
class Told:
    """A row of the sink, the event it speaks of, and what held."""

    subscription: str
    event: str
    why: str
    at: datetime | None
    rank: int | None
    score: float
    asks: str
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """An event in a subscription's list, from one instant to another, in microseconds."""

    event: str
    relevance: float
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class ListStory:
    """A subscription, where it is, what it heard, and its list over time."""

    subscription: Subscription
    box: tuple[float, float, float, float] | None
    points: NDArray[np.float64]
    spans: list[Span]
    told: int


@dataclass(frozen=True, slots=True)
class Stories:
    top: Sequence[tuple[str, int]] = ()
    told: Sequence[Told] = ()
    list: ListStory | None = None
    places: pa.Table | None = None
    silent: str = ""
    """Why there is nothing to tell."""


def stories_of(spark: SparkSession, job: Job, view: View) -> Stories:
    """What there is to tell; nothing of sinks and sources that are not files, or are large."""
    if not (rereadable(job.sink) and rereadable(job.asked)):
        return Stories(silent="Stories are told where sink and source are files of this machine, of at most a gigabyte.")
    found = read(spark, "sink", job.sink)
    counted = found.groupBy("subscription").count().orderBy(F.desc("count"), "subscription").limit(10).collect()
    events = asked_of(spark, job, streaming=False)
    places = None if view.schema.place is None else events.select(view.schema.place).limit(3000).toArrow()
    told = told_of(found, events, view)
    return Stories([(row["subscription"], row["count"]) for row in counted], told, list_of(found, events, view), places)


def rereadable(source: Source) -> bool:
    """Whether a source or sink is of local files, and no more than READ_AGAIN of them."""
    if source.format not in FILES:
        return False
    files = [file for path in glob.glob(source.options["path"]) for file in (Path(path), *Path(path).rglob("*")) if file.is_file()]
    return 0 < sum(file.stat().st_size for file in files) <= READ_AGAIN


def told_of(found: DataFrame, events: DataFrame, view: View) -> list[Told]:
    """Some rows of each kind, explained; of subscriptions that are still there and events whose file still is."""
    kinds = [found.where(F.col("why") == kind) for kind in KINDS] if "why" in found.columns else [found]
    rows = [row.asDict() for kind in kinds for row in kind.limit(OF_EACH * len(KINDS) // len(kinds)).collect()]
    return [told for told in explained(rows, events, view) if told.held]


def explained(rows: Sequence[Mapping[str, Any]], events: DataFrame, view: View) -> list[Told]:
    """Each of the sink's rows with what held; nothing is said of a subscription or event that is not there any more."""
    batch = events_named(events, view, [row["event"] for row in rows])
    known = {id: event_at(batch, row) for row, id in enumerate(batch.ids.to_pylist())}
    told = []
    for row in rows:
        subscription, event = subscription_of(view, row["subscription"]), known.get(row["event"])
        held: tuple[str, ...] = ()
        if subscription is not None and event is not None:
            columns = encode_events(view.schema, view.vocabularies, [event.values])
            why = explain_pair(view.reader, columns, event, subscription, event.time or 0)
            held = why.held or (str(why.reason or why),)
        said = (row.get("why") or "matched", row.get("at"), row.get("rank"), row["score"])
        told.append(Told(row["subscription"], row["event"], *said, "" if subscription is None else asks(subscription), held))
    return told


def list_of(found: DataFrame, events: DataFrame, view: View) -> ListStory | None:
    """The list over time of the ranked subscription that was told most."""
    if "why" not in found.columns or view.key is not None:
        return None
    ranked = found.where(F.col("why").isin("entered", "promoted")).groupBy("subscription").count()
    for row in ranked.orderBy(F.desc("count"), "subscription").limit(20).collect():
        chosen = subscription_of(view, row["subscription"])
        if chosen is not None and chosen.k and chosen.window is not None and chosen.window.duration is not None:
            heard = found.where(F.col("subscription") == chosen.id).select("event").limit(SPANS).toArrow()["event"].to_pylist()
            batch = events_named(events, view, heard)
            box = next((clause.box for clause in chosen.clauses if clause.box is not None), None)
            edges = batch.columns.box[np.isfinite(batch.columns.box).all(axis=1)]
            return ListStory(chosen, box, (edges[:, :2] + edges[:, 2:]) / 2, spans_of(view, chosen, batch), row["count"])
    return None


def spans_of(view: View, chosen: Subscription, heard: EventBatch) -> list[Span]:
    """From when to when each event stood in the list, by the embedded engine: what was told is all that ever stood there."""
    assert chosen.window is not None
    assert chosen.window.duration is not None
    if not len(heard) or (heard.time == NONE).any():
        return []
    topic = Topic("list", view.schema)
    topic.subscribe(chosen.id, k=chosen.k, window=str(chosen.window), by=chosen.by, time=instant(int(heard.time.min()) - 1))
    waiting = sorted(zip(heard.time.tolist(), heard.ids.to_pylist(), range(len(heard)), strict=True), reverse=True)
    changes = np.unique(np.concatenate([heard.time, heard.time + chosen.window.duration, heard.expires[heard.expires != NONE]]))
    listed: dict[str, Span] = {}
    spans = []
    for now in changes.tolist():
        while waiting and waiting[-1][0] == now:
            topic.publish_batch(heard.table.slice(waiting.pop()[2], 1))
        topic.advance(instant(now))
        there = {match.event: match.score for match in topic.top(chosen.id, time=instant(now))}
        spans += [replace(listed.pop(event), end=now) for event in [*listed] if event not in there]
        for event in there.keys() - listed.keys():
            listed[event] = Span(event, there[event], now, now)
    return spans


def events_named(events: DataFrame, view: View, ids: Sequence[str]) -> EventBatch:
    """The events of these ids, read as the topic reads them."""
    known = [name for name in events.columns if name in event_columns(view)]
    named = events.where(F.col(view.key or "id").isin(list(ids)))
    return view.read(named.select(*(F.col(f"`{name}`") for name in known)).toArrow(), "skip")


def event_at(batch: EventBatch, row: int) -> Event:
    time, expires = (None if one == NONE else one for one in (int(batch.time[row]), int(batch.expires[row])))
    return Event(batch.ids[row].as_py(), batch.values(row), time, expires)


def subscription_of(view: View, id: str) -> Subscription | None:
    live, ordinal = view.reader.find(id)
    return None if live is None else live.subscription(ordinal)


def asks(subscription: Subscription) -> str:
    """What a subscription's ranking asks for, in words."""
    if not subscription.is_ranked:
        return "everything that matches"
    best = "all" if subscription.k is None else f"the best {subscription.k}"
    window = "" if subscription.window is None else f" of the last {subscription.window}"
    return f"{best}{window}{'' if subscription.by is None else f' by {subscription.by}'}"
