"""The events that `search` looks through (`event_sources` has them from), and the tree that finds them.

Mapped columns are shared by the workers of a machine; the tree (`MOEventTree`, the engine's own) is each worker's, made when it
first meets the snapshot, and kept for the last one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.errors import EventError, SubscriptionError
from tidings.index.motree.event_tree import MOEventTree
from tidings.match.store.hits import LONG_AGO, NEVER, Pairs
from tidings.match.store.planner import Homes
from tidings.match.store.segment import Segment
from tidings.match.store.subscription_rows import rows_of_batch
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.subscription_tables import SubscriptionBatch
from tidings.model.columns.tables import EventBatch, events_from_arrow
from tidings.model.columns.vocabulary import Vocabulary
from tidings.model.values.schema import Schema
from tidings.spark.frames.answer_columns import FOUND
from tidings.spark.frames.arrow_stage import Batches, together
from tidings.spark.transforms.event_sources import write_events
from tidings.topic.live.tree_axes import event_axes

FILE = {"file": pa.string(), "rows": pa.int64()}


class Learning(Vocabulary):
    """Gives every string that is asked for a code, so that events are encoded whole and any later clause finds them."""

    code, codes = Vocabulary.add, Vocabulary.add_all


class SearchableEvents:
    """The events of `table` that live at `time`, and the codes that subscriptions must be read with."""

    def __init__(self, schema: Schema, key: str | None, table: pa.Table, time: int) -> None:
        self.schema = schema
        self.time = time
        self.vocabularies = Vocabularies(schema)
        self.vocabularies.categories = {name: Learning() for name in self.vocabularies.categories}
        self.vocabularies.words = Learning()
        self.events = self._live(table, key)
        self._tree = MOEventTree(event_axes(schema, self.vocabularies, self.events.columns), len(schema.ranges) + 2)
        expires = np.where(self.events.expires == NONE, NEVER, self.events.expires)
        self._tree.insert(np.arange(len(self.events), dtype=np.int32), self.events.columns, expires)

    def _live(self, table: pa.Table, key: str | None) -> EventBatch:
        every = events_from_arrow(self.schema, self.vocabularies, table, key)
        if len(every.ids.unique()) < len(every):
            raise EventError(f"{key or 'id'} stands twice among these events: search takes each event once")
        gone = every.deleted | ((every.expires != NONE) & (every.expires <= self.time))
        return events_from_arrow(self.schema, self.vocabularies, table.filter(pa.array(~gone)), key) if gone.any() else every

    def search(self, batch: SubscriptionBatch) -> pa.Table:
        """(subscription, event, score) of every match, by subscription and event."""
        rows = rows_of_batch(batch, 0)
        asked = Segment(self.schema, rows.table.combine_chunks(), Homes({}, {}), rows.residues, rows.clauses.owner, 0)
        if len(asked.similar):
            raise SubscriptionError(
                f"subscription {asked.names[int(asked.similar[0])]!r} goes by similarity: search takes filters alone"
            )
        clause, event = self._tree.search_batch(rows.clauses, LONG_AGO)
        owner, event = self._exact(asked, clause, event)
        if asked.expires is not None:
            owner, event = (column[asked.expires[owner] > self.time] for column in (owner, event))
        score = asked.scores(event, owner, self.events.values)
        ids = asked.names.strings.take(pa.array(owner)), self.events.ids.take(pa.array(event))
        return pa.table([*ids, pa.array(score)], list(FOUND)).sort_by([(name, "ascending") for name in FOUND])

    def _exact(self, asked: Segment, clause: np.ndarray, event: np.ndarray) -> Pairs:
        """Owners and events whose residues hold too, each pair once."""
        if asked.residues:
            kept = np.ones(len(clause), np.bool_)
            for i in np.flatnonzero(np.isin(clause, list(asked.residues))):
                kept[i] = all(residue.test(self.events.values(int(event[i]))) for residue in asked.residues[int(clause[i])])
            clause, event = clause[kept], event[kept]
        pairs = np.unique(np.stack([asked.owner(clause), event]), axis=1)
        return pairs[0], pairs[1]


@dataclass(frozen=True, slots=True)
class EventWriter:
    """Writes the events of a partition, checked, each with its id."""

    folder: Path
    schema: Schema
    key: str | None
    time: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in together(batches):
            ids = events_from_arrow(self.schema, Vocabularies(self.schema), table, self.key).ids
            if self.key is None:
                table = table.drop_columns([name for name in ("id",) if name in table.column_names]).append_column("id", ids)
            file = f"{uuid.uuid4().hex}.arrow"
            write_events(self.folder / file, table, self.time)
            yield pa.record_batch([[file], [len(table)]], schema=pa.schema(list(FILE.items())))
