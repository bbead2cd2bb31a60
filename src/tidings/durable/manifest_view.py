"""A topic's subscriptions as one manifest has them: for those who only match. Needs the folder, not the registry; takes no lock.

`View.open(folder, number)` maps the segments of manifest `number`, of the newest without one. `snapshots.view_of` is the same
from this process's cache, for topics in lakes too.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.durable.manifest import Manifest, load_manifest, load_segment, load_vocabularies
from tidings.match.answers.ordering import match_table
from tidings.match.answers.relaxed import relaxed_table
from tidings.match.store.hits import Hits
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.reader import Snapshot, reader_of
from tidings.match.store.sorted_ids import ABSENT
from tidings.match.store.subscription_rows import RANKING
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.tables import EventBatch, events_from_arrow
from tidings.model.filter.clause import PREVIOUS
from tidings.model.values.schema import Schema
from tidings.topic.ranked_matches import Relevances

pc = lazily("pyarrow.compute")


class Place(NamedTuple):
    """Where subscriptions stand: number of the segment (ABSENT for one that is not there) and ordinal in it."""

    segment: NDArray[np.int64]
    ordinal: NDArray[np.int64]


class View:
    def __init__(
        self, folder: Path, manifest: Manifest, verify: bool = True, known: View | None = None, title: str | None = None
    ) -> None:
        """`known` is a view of the same topic, whose mapped segments are taken over; `title` is how sentences name the topic."""
        self.folder = folder
        self.title = str(folder) if title is None else title
        self.manifest = manifest
        self.schema = Schema.from_dict(manifest.schema)
        self.key = manifest.key
        self.vocabularies = load_vocabularies(self.schema, folder / manifest.vocabulary, manifest.sums.get(manifest.vocabulary))
        mapped: dict[str, LiveSegment] = {} if known is None else known.files
        self.files: dict[str, LiveSegment] = {
            file: load_segment(
                self.schema, self.vocabularies, folder, file, live, manifest.sums, verify=verify, known=mapped.get(file)
            )
            for file, live in manifest.segments
        }
        self.relevances: Relevances = Relevances(self.schema) if known is None else known.relevances
        self.reader = reader_of(self.schema, self.vocabularies, Snapshot(tuple(self.files.values()), manifest.seq))

    @classmethod
    def open(cls, folder: str | os.PathLike[str], number: int | None = None, verify: bool = True) -> View:
        """The folder's topic as manifest `number` has it; `verify` reads every file once to check its sums."""
        return cls(Path(folder), load_manifest(Path(folder), number), verify)

    @property
    def segments(self) -> tuple[LiveSegment, ...]:
        return self.reader.snapshot.segments

    def __len__(self) -> int:
        return len(self.reader)

    def read(self, table: pa.Table, on_error: str = "raise") -> EventBatch:
        return events_from_arrow(self.schema, self.vocabularies, table, key=self.key, on_error=on_error)

    def match(
        self, events: pa.Table | EventBatch, k: int | None = None, relaxed: bool = False, aggregate: str = "sum", *, time: int
    ) -> pa.Table:
        """(row, event, subscription, score). An event meets the subscriptions that live at its own time, or at `time`.

        When `relaxed`, all are met as they live at `time`.
        """
        batch = events if isinstance(events, EventBatch) else self.read(events)
        if relaxed:
            return relaxed_table(self.reader, batch, k, aggregate, time)
        return match_table(batch.ids, self.find(batch, time, k), k)

    def find(self, batch: EventBatch, time: int, k: int | None = None) -> Hits:
        """The matches of live subscriptions; with k, who is not among an event's k best may be left out."""
        return self.reader.match(batch, k, at=np.where(batch.time == NONE, time, batch.time))

    def locate(self, ids: pa.StringArray) -> Place:
        """Where the subscriptions of these ids stand."""
        place = Place(np.full(len(ids), ABSENT), np.zeros(len(ids), np.int64))
        for number, segment in enumerate(self.segments):
            ordinal = segment.find_many(ids, self.manifest.seq)
            here = ordinal != ABSENT
            place.segment[here], place.ordinal[here] = number, ordinal[here]
        return place

    def ranking(self, place: Place, names: tuple[str, ...]) -> pa.Table:
        """Ranking columns (see `rows.RANKING`) of the subscriptions at `place`, null for the default."""
        columns = {name: pa.nulls(len(place.segment), RANKING[name]) for name in names}
        for number, segment in enumerate(self.segments):
            here = place.segment == number
            for name in columns:
                if name in segment.segment.table.column_names and here.any():
                    taken = segment.segment.table[name].combine_chunks().take(pa.array(place.ordinal[here]))
                    columns[name] = pc.replace_with_mask(columns[name], pa.array(here), taken)
        return pa.table(columns)

    @cached_property
    def recalling(self) -> str | None:
        """A live subscription whose filter asks for a value before an object's last update, if there is one."""
        for live in self.segments if self.key is not None else ():
            asking = [
                clause
                for clause, residues in live.segment.residues.items()
                if any(name.startswith(PREVIOUS) for residue in residues for name in residue.attributes)
            ]
            ordinals = live.segment.owner(np.array(asking, np.int32)).astype(np.int64)
            ordinals = ordinals[live.is_live(ordinals, self.manifest.seq)] if len(ordinals) else ordinals
            if len(ordinals):
                return live.names(ordinals[:1])[0]
        return None

    def check(self) -> None:
        for segment in self.segments:
            segment.check()
