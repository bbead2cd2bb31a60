"""A topic's subscriptions as one manifest has them: for those who only match. Needs the folder, not the registry; takes no lock.

`View.open(folder, number)` maps the segments of manifest `number`, of the newest without one. `view_of` is the same from this
process's cache: the newest `KEPT_VIEWS` of a folder stay mapped, and a manifest that shares segments with one of them checks and
maps only the others, so following a topic that changes costs what changed.
"""

from __future__ import annotations

import copy
import os
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.durable.manifest import Manifest, bury, load_manifest, load_segment, load_vocabularies
from tidings.match.answers.ordering import is_live, match_table
from tidings.match.answers.relaxed import relaxed_table
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.segment import NOBODY, Segment
from tidings.match.store.similar import Found as SimilarFound
from tidings.match.store.sorted_ids import ABSENT
from tidings.match.store.store import Found, Snapshot, Store
from tidings.match.store.subscription_rows import RANKING
from tidings.model.columns.arrow import NONE
from tidings.model.columns.tables import EventBatch, events_from_arrow
from tidings.model.values.schema import Schema

KEPT_VIEWS = 2
LONG_AGO = -(2**62)
"""Before any expiry: for `match_table` when the expired have been left out already."""


class Place(NamedTuple):
    """Where subscriptions stand: number of the segment (ABSENT for one that is not there) and ordinal in it."""

    segment: NDArray[np.int64]
    ordinal: NDArray[np.int64]


class View:
    def __init__(self, folder: Path, manifest: Manifest, verify: bool = True, known: View | None = None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.schema = Schema.from_dict(manifest.schema)
        self.key = manifest.key
        self.files = {file: self._segment(file, live, verify, known) for file, live in manifest.segments}
        vocabularies = load_vocabularies(self.schema, folder / manifest.vocabulary)
        self.store = Store(self.schema, vocabularies, Statistics())
        self.store.adopt(Snapshot(tuple(self.files.values()), manifest.seq))

    @classmethod
    def open(cls, folder: str | os.PathLike[str], number: int | None = None, verify: bool = True) -> View:
        """The folder's topic as manifest `number` has it; `verify` reads every file once to check its sums."""
        return cls(Path(folder), load_manifest(Path(folder), number), verify)

    def _segment(self, file: str, live: str | None, verify: bool, known: View | None) -> Segment:
        if known is None or file not in known.files:
            return load_segment(self.schema, self.folder, file, live, verify=verify)
        segment = copy.copy(known.files[file])
        segment.died, segment.dead = NOBODY, 0
        bury(segment, self.folder, live, verify)
        return segment

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.store.snapshot.segments

    def __len__(self) -> int:
        return len(self.store)

    def read(self, table: pa.Table, on_error: str = "raise") -> EventBatch:
        return events_from_arrow(self.schema, self.store.vocabularies, table, key=self.key, on_error=on_error)

    def match(
        self, events: pa.Table | EventBatch, k: int | None = None, relaxed: bool = False, aggregate: str = "sum", *, time: int
    ) -> pa.Table:
        """(row, event, subscription, score). An event meets the subscriptions that live at its own time, or at `time`.

        Those that go by similarity, and all when `relaxed`, are met as they live at `time`.
        """
        batch = events if isinstance(events, EventBatch) else self.read(events)
        if relaxed:
            return relaxed_table(self.store, batch, k, aggregate, time)
        found, similar = self._found(batch, time, k)
        living = [(row, s, score) for row, s, score in similar if is_live(s, time)]
        return match_table(batch.ids, found, [], batch.values, k, LONG_AGO, living)

    def find(self, batch: EventBatch, time: int, k: int | None = None) -> list[Found]:
        """The matches of live subscriptions, by segment; with k, who is not among an event's k best may be left out."""
        return self._found(batch, time, k)[0]

    def _found(self, batch: EventBatch, time: int, k: int | None) -> tuple[list[Found], SimilarFound]:
        found, _, similar = self.store.match(lambda: batch.columns, batch.values, k)
        at = np.where(batch.time == NONE, time, batch.time)
        return [_unexpired(part, at) for part in found], similar

    def locate(self, ids: pa.StringArray) -> Place:
        """Where the subscriptions of these ids stand."""
        place = Place(np.full(len(ids), ABSENT), np.zeros(len(ids), np.int64))
        for number, segment in enumerate(self.segments):
            ordinal = segment.names.find_many(ids)
            here = (ordinal != ABSENT) & segment.is_live(ordinal, self.manifest.seq)
            place.segment[here], place.ordinal[here] = number, ordinal[here]
        return place

    def ranking(self, place: Place, names: tuple[str, ...]) -> pa.Table:
        """Ranking columns (see `rows.RANKING`) of the subscriptions at `place`, null for the default."""
        columns = {name: pa.nulls(len(place.segment), RANKING[name]) for name in names}
        for number, segment in enumerate(self.segments):
            here = place.segment == number
            for name in columns:
                if name in segment.table.column_names and here.any():
                    taken = segment.table[name].combine_chunks().take(pa.array(place.ordinal[here]))
                    columns[name] = pc.replace_with_mask(columns[name], pa.array(here), taken)
        return pa.table(columns)

    def check(self) -> None:
        for segment in self.segments:
            segment.check()


def _unexpired(found: Found, at: NDArray[np.int64]) -> Found:
    segment, event, ordinal, _ = found
    if segment.expires is None:
        return found
    live = segment.expires[ordinal] > at[event]
    return Found(segment, event[live], ordinal[live], found.best)


_views: dict[Path, list[View]] = {}
_lock = threading.Lock()


def view_of(folder: str | os.PathLike[str], number: int) -> View:
    """The view from this process's cache, opened if it is not there."""
    path = Path(folder)
    with _lock:
        kept = _views.setdefault(path, [])
        for view in kept:
            if view.manifest.number == number:
                return view
        view = View(path, load_manifest(path, number), known=kept[-1] if kept else None)
        kept.append(view)
        del kept[:-KEPT_VIEWS]
        return view
