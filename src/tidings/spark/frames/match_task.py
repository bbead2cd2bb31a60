"""What a task of `match` does with its events, and the rows that it gives; each worker maps the topic's segments.

| column         | type   | there                 | meaning                                                                      |
|----------------|--------|-----------------------|------------------------------------------------------------------------------|
| `event`        | string |                       |                                                                              |
| `subscription` | string |                       | null in a row that only tells of an event (`ranking`) or refuses one          |
| `score`        | double |                       |                                                                              |
| `relevance`    | double | `ranking=True`        | by which the subscription ranks: its `by`, else the score                     |
| `time`         | long   | `ranking=True`        | microseconds; the event's own, else the micro-batch's                        |
| `expires`      | long   | `ranking=True`        | microseconds, null for never                                                 |
| `group`        | long   | `ranking=True`        | of the event, by the subscription's `per`; null without one                  |
| carried        |        | `carry=[...]`         | these columns of the event                                                   |
| `_corrupt`     | string | `corrupt=True`        | why the event was refused, in a row that has else its id and what is carried   |

Without `corrupt=True` an event that cannot be read stops the query. One without an id cannot be read, since a retry would name it
anew. With `ranking=True` an event that matches nobody has a row too: `notify` moves its clock by it, and count windows count it.

An event may match every subscription, so a batch is matched in slices that, by what the last slice gave, give about HELD_ROWS rows
at most. The first has as many events as are safe, but FIRST at least; a slice has no more than GROWTH times the events of the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidings.durable.manifest_view import View
from tidings.durable.snapshots import Snapshots
from tidings.errors import EventError, SubscriptionError
from tidings.match.answers.ordering import ROW, table_of
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch
from tidings.spark.frames import arrow_stage
from tidings.spark.frames.answer_columns import CORRUPT, MATCH, RANKED, REASON
from tidings.spark.frames.arrow_stage import Batches, Columns, given_out, shaped
from tidings.spark.frames.metrics import MANIFEST
from tidings.spark.frames.pins import Pin
from tidings.spark.frames.topic_view import event_columns, task_view
from tidings.topic.publications import PublishedBatch

FIRST = 64
GROWTH = 64
NAMED = "an event on Spark has an id, so that a retry gives the same rows"

_at_once: dict[tuple[str, int], int] = {}
"""How many events of a topic this worker matches at once."""


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Travels to the workers pickled: a path and a few settings."""

    topic: Snapshots
    pin: Pin
    k: int | None = None
    relaxed: bool = False
    aggregate: str = "sum"
    corrupt: bool = False
    ranking: bool = False
    carried: tuple[tuple[str, pa.DataType], ...] = ()
    numbered: bool = False
    """Events have a number in column `row`, and matches get it."""
    metered: bool = False
    """Answers say which manifest they were found in (`metrics.MANIFEST`)."""

    @property
    def columns(self) -> Columns:
        numbers = {ROW: pa.int64()} if self.numbered else {}
        given = MATCH | (RANKED if self.ranking else {}) | dict(self.carried)
        return given | (CORRUPT if self.corrupt else {}) | numbers | ({MANIFEST: pa.int64()} if self.metered else {})

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        view, time = task_view(self.topic, self.pin)
        for batch in batches:
            if len(batch):
                yield from self.match(view, batch, time)

    def match(self, view: View, batch: pa.RecordBatch, time: int) -> Iterator[pa.RecordBatch]:
        if view.recalling is not None:
            raise SubscriptionError(
                f"subscription {view.recalling!r} asks for PREV: match sees events and no objects; board keeps them"
            )
        table, refused = self._readable(pa.Table.from_batches([batch]), view.key or "id")
        own = set(event_columns(view))
        beside = [*dict(self.carried), *([ROW] if self.numbered else [])]
        events = view.read(table.select([name for name in table.column_names if name in own]), "skip" if self.corrupt else "raise")
        if events.refused:
            rows, reasons = zip(*events.refused, strict=True)
            refused.append(self._refused(table.take(pa.array(rows)), view.key or "id", reasons))
        for first, some in () if self.k == 0 else slices(view, events):
            found = ranked(view, some, time) if self.ranking else view.match(some, self.k, self.relaxed, self.aggregate, time=time)
            learn(view, len(some), len(found))
            if beside:
                row = pa.array(events.rows[first + found[ROW].to_numpy()])
                columns = {name: found[name] for name in found.column_names} | {name: table[name].take(row) for name in beside}
                found = pa.table(columns)
            yield from self._given_out([found], view)
        if refused:
            yield from self._given_out(refused, view)

    def _given_out(self, tables: Sequence[pa.Table], view: View) -> Iterator[pa.RecordBatch]:
        table = shaped(tables, self.columns)
        if self.metered:
            number = pa.array(np.full(len(table), view.manifest.number))
            table = table.set_column(table.column_names.index(MANIFEST), MANIFEST, number)
        yield from given_out(table)

    def _readable(self, table: pa.Table, id_field: str) -> tuple[pa.Table, list[pa.Table]]:
        """The rows that `parse` could read and that have an id, and what is said of the others."""
        refused = []
        if REASON in table.column_names:
            bad = table.filter(table[REASON].is_valid())
            refused.append(self._refused(bad, id_field, bad[REASON].to_pylist()))
            table = table.filter(table[REASON].is_null())
        if table[id_field].null_count:
            bad = table.filter(table[id_field].is_null())
            refused.append(self._refused(bad, id_field, [f"{id_field} is null: {NAMED}"] * len(bad)))
            table = table.filter(table[id_field].is_valid())
        return table, refused

    def _refused(self, table: pa.Table, id_field: str, reasons: Sequence[str]) -> pa.Table:
        """The rows that tell of refused events, which stop the query if it does not ask for them."""
        if reasons and not self.corrupt:
            raise EventError(reasons[0])
        kept = {name: table[name] for name, _ in self.carried}
        return pa.table({"event": table[id_field].cast(pa.string()), **kept, REASON: pa.array(reasons, pa.string())})


def slices(view: View, events: EventBatch) -> Iterator[tuple[int, EventBatch]]:
    """The events, as many at once as may be matched: the number of the first, and they."""
    first = 0
    while first < len(events):
        count = min(_at_once.get(_kind(view)) or max(FIRST, arrow_stage.HELD_ROWS // max(len(view), 1)), len(events) - first)
        yield first, events if count == len(events) else view.read(events.table.slice(first, count))
        first += count


def _kind(view: View) -> tuple[str, int]:
    """Views that are alike in how much an event matches: of one topic, and of about as many subscriptions."""
    return view.title, len(view).bit_length()


def learn(view: View, events: int, rows: int) -> None:
    """How many events to match at once, now that so many gave so many rows."""
    most = max(_at_once.get(_kind(view), 0), events * GROWTH)
    _at_once[_kind(view)] = max(1, min(most, arrow_stage.HELD_ROWS * events // max(rows, 1)))


def ranked(view: View, events: EventBatch, time: int) -> pa.Table:
    """The matches with what windows need, and a row for each event that nobody matched. One without relevance concerns nobody."""
    published = PublishedBatch(events, time, False)
    judge, tables = view.relevances.of_batch(published), []
    for found in view.find(events, time):
        relevance = judge.of(found)
        listed = found.source.ranked(found.ordinal)
        relevance = found.score if listed is None else np.where(listed, relevance, found.score)
        known = np.isfinite(relevance)
        found = found.where(known)
        named = table_of(found.event, found.source.ids(found.ordinal), found.score)
        tables.append(named.append_column("relevance", pa.array(relevance[known])))
    matched = np.zeros(len(events), np.bool_)
    for table in tables:
        matched[table[ROW].to_numpy()] = True
    nothing = pa.table({ROW: pa.array(np.flatnonzero(~matched).astype(np.int32))})
    kinds = {ROW: pa.int32(), "subscription": pa.string(), "score": pa.float64(), "relevance": pa.float64()}
    told = shaped([*tables, nothing.slice(0, 0)], kinds)
    told = told.append_column("group", groups(view, events, told))
    every = shaped([told, nothing], kinds | {"group": RANKED["group"]})
    row = every[ROW].to_numpy()
    expires = events.expires[row]
    every = every.append_column("event", events.ids.take(pa.array(row))).append_column("time", pa.array(published.at[row]))
    return every.append_column("expires", pa.array(expires, mask=expires == NONE))


def groups(view: View, events: EventBatch, found: pa.Table) -> pa.Array:
    """The group of each match's event by its subscription's `per`, null where it has none."""
    if not any("per" in live.segment.table.column_names for live in view.segments):
        return pa.nulls(len(found), RANKED["group"])
    ids = found["subscription"].combine_chunks().dictionary_encode()
    per = view.ranking(view.locate(ids.dictionary), ("per",))["per"].combine_chunks().take(ids.indices).dictionary_encode()
    code, row = per.indices.fill_null(-1).to_numpy(), found[ROW].to_numpy()
    group = np.zeros(len(found), np.int64)
    for number, name in enumerate(per.dictionary.to_pylist()):
        here = np.flatnonzero(code == number)
        group[here] = events.groups(name)[row[here]]
    return pa.array(group, mask=group == 0)
