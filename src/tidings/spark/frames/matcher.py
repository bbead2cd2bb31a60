"""What a task of `match` does with its events, and the rows that it gives; each worker maps the topic's segments.

| column         | type   | there                 | meaning                                                                      |
|----------------|--------|-----------------------|------------------------------------------------------------------------------|
| `event`        | string |                       |                                                                              |
| `subscription` | string |                       | null in a row that only tells of an event (`ranking`) or refuses one          |
| `score`        | double |                       |                                                                              |
| `relevance`    | double | `ranking=True`        | by which the subscription ranks: its `by`, else the score                     |
| `time`         | long   | `ranking=True`        | microseconds; the event's own, else the micro-batch's                        |
| `expires`      | long   | `ranking=True`        | microseconds, null for never                                                 |
| `_corrupt`     | string | `corrupt=True`        | why the event was refused, in a row that has nothing else but its id           |

Without `corrupt=True` an event that cannot be read stops the query. With `ranking=True` an event that matches nobody has a row
too: `notify` moves its clock by it, and count windows count it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.durable.manifest_view import View, view_of
from tidings.match.answers.ordering import ROW
from tidings.model.columns.arrow import NONE
from tidings.model.columns.tables import EventBatch
from tidings.rank.relevance import relevance_of
from tidings.spark.frames.columns import CORRUPT, MATCH, RANKED, Batches, shaped
from tidings.spark.frames.pins import Pin, current

NOBODY = pa.table({ROW: pa.array([], pa.int64())})


@dataclass(frozen=True, slots=True)
class Matcher:
    """What a task does with its events. Travels to the workers pickled: a path and a few settings."""

    folder: Path
    pin: Pin
    k: int | None = None
    relaxed: bool = False
    aggregate: str = "sum"
    corrupt: bool = False
    ranking: bool = False
    numbered: bool = False
    """Events have a number in column `row`, and matches get it."""

    @property
    def columns(self) -> dict[str, pa.DataType]:
        numbers = {ROW: pa.int64()} if self.numbered else {}
        return MATCH | (RANKED if self.ranking else {}) | (CORRUPT if self.corrupt else {}) | numbers

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        pin = current(self.folder, self.pin)
        view = view_of(self.folder, pin.manifest)
        for batch in batches:
            if len(batch):
                yield from self.match(view, batch, pin.time).to_batches(max_chunksize=100_000)

    def match(self, view: View, batch: pa.RecordBatch, time: int) -> pa.Table:
        refused: list[pa.Table] = []
        table = pa.Table.from_batches([batch])
        if "_corrupt" in table.column_names:
            table, told = take_corrupt(table, view.key)
            refused.append(told)
        if self.numbered:
            numbers = table[ROW].to_numpy()
            table = table.drop_columns([ROW])
        events = view.read(table, on_error="skip" if self.corrupt else "raise")
        found = NOBODY if self.k == 0 else view.match(events, self.k, self.relaxed, self.aggregate, time=time)
        if events.refused:
            rows, reasons = zip(*events.refused, strict=True)
            refused.append(told_of(table.take(pa.array(rows)), reasons, view.key))
        if self.ranking:
            found = with_ranking(view, events, found, time)
        if self.numbered:
            given = numbers[events.rows][found[ROW].to_numpy()]
            found = found.set_column(found.column_names.index(ROW), ROW, pa.array(given))
        return shaped([found, *refused] if self.corrupt else [found], self.columns)


def take_corrupt(table: pa.Table, key: str | None) -> tuple[pa.Table, pa.Table]:
    """The rows that `parse` could read, and what it said of the others."""
    bad = table["_corrupt"].is_valid()
    told = table.filter(bad)
    return table.filter(pc.invert(bad)).drop_columns(["_corrupt"]), told_of(told, told["_corrupt"], key)


def told_of(table: pa.Table, reasons: Iterable[str], key: str | None) -> pa.Table:
    id_field = key or "id"
    ids = table[id_field].cast(pa.string()) if id_field in table.column_names else pa.nulls(len(table), pa.string())
    return pa.table({"event": ids, "_corrupt": pa.chunked_array([pa.array(list(reasons), pa.string())])})


def with_ranking(view: View, events: EventBatch, found: pa.Table, time: int) -> pa.Table:
    """Add what windows need, and a row for each event that nobody matched. A match without relevance concerns nobody."""
    published = np.where(events.time == NONE, time, events.time)
    relevance = relevances(view, events, found, published)
    known = pc.is_valid(relevance)
    found, relevance = found.filter(known), relevance.filter(known)
    row = found["row"].to_numpy()
    matched = np.zeros(len(events), np.bool_)
    matched[row] = True
    silent = np.flatnonzero(~matched)
    every = np.concatenate([row, silent])
    at = published[every]
    expires = events.expires[every]
    nothing = pa.table({"event": events.ids.take(pa.array(silent))})
    both = shaped([found, nothing], MATCH)
    added = {
        "relevance": pa.chunked_array([relevance, pa.nulls(len(silent), pa.float64())]),
        "time": pa.array(at),
        "expires": pa.array(expires, mask=expires == NONE),
    }
    for name, column in added.items():
        both = both.append_column(name, column)
    return both


def relevances(view: View, events: EventBatch, found: pa.Table, published: NDArray[np.int64]) -> pa.Array:
    """The relevance of each match, null for none: the subscription's `by` of the event, else the score.

    Each (by, event) is computed once.
    """
    score: NDArray[np.float64] = found["score"].to_numpy().copy()
    if any("by" in segment.segment.table.column_names for segment in view.segments):
        ids = found["subscription"].combine_chunks().dictionary_encode()
        by = view.ranking(view.locate(ids.dictionary), ("by",))["by"].combine_chunks().take(ids.indices).dictionary_encode()
        code = by.indices.fill_null(-1).to_numpy()
        row = found["row"].to_numpy()
        for number, text in enumerate(by.dictionary.to_pylist()):
            here = np.flatnonzero(code == number)
            distinct, place = np.unique(row[here], return_inverse=True)
            relevance = relevance_of(view.schema, text)
            values = [relevance(events.values(one), int(published[one])) for one in distinct.tolist()]
            score[here] = np.array([np.nan if value is None else value for value in values])[place]
    return pa.array(score, mask=np.isnan(score))
