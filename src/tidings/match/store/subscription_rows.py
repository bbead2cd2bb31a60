"""Subscriptions in bulk: a table of who they are and how they rank, and the columns of their clauses.

`table` has a row a subscription: `id` (string) and those of the ranking columns that anybody uses (RANKING).
`clauses.owner` is the row, ascending, so that a subscription's clauses lie together. `residues[clause]` are the CQL2 JSON
sources that are checked last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.model.columns.arrays import ClauseColumns, Vocabularies, encode_clauses, ragged_take
from tidings.model.columns.gather import concat_clauses, gather_clauses
from tidings.model.columns.rankings import Rankings
from tidings.model.columns.subscription_tables import SubscriptionBatch
from tidings.model.door.subscription import Subscription
from tidings.model.values.pace import PACES
from tidings.model.values.schema import Schema

pc = lazily("pyarrow.compute")

RANKING = {
    "score": pa.float64(),
    "formula": pa.string(),
    "alpha": pa.float64(),
    "theta": pa.float64(),
    "k": pa.int32(),
    "window": pa.string(),
    "by": pa.string(),
    "expires": pa.int64(),
    "owner": pa.string(),
    "error": pa.float64(),
    "since": pa.int64(),
    "tags": pa.list_(pa.string()),
    "filter": pa.string(),
    "within": pa.list_(pa.float64(), 3),
    "centre": pa.list_(pa.float64(), 2),
    "per": pa.string(),
    "tz": pa.string(),
    **dict.fromkeys(PACES, pa.string()),
}
"""Ranking columns and their types, as in `model.rankings`; null means the default. Weights are columns `attribute.weight`.
`filter`, `within` (x, y, metres) and `centre` are what the clauses were made of, to be read back."""
WEIGHT = ".weight"
SOURCES = ("since", "filter", "within", "centre")
"""Columns that no table of subscriptions has as its ranking: they are kept as they are."""


@dataclass(frozen=True, slots=True)
class Rows:
    table: pa.Table
    clauses: ClauseColumns
    residues: Mapping[int, tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.table)

    def ids(self) -> pa.StringArray:
        return self.table["id"].combine_chunks() if self.table["id"].num_chunks != 1 else self.table["id"].chunk(0)

    def clause_start(self) -> NDArray[np.int64]:
        """Subscription r's clauses are [clause_start[r], clause_start[r + 1])."""
        return np.searchsorted(self.clauses.owner, np.arange(len(self) + 1)).astype(np.int64)

    def take(self, rows: NDArray[np.integer]) -> Rows:
        """The given subscriptions, in the given order."""
        start, taken = ragged_take(self.clause_start(), np.asarray(rows, np.int64))
        clauses = gather_clauses(self.clauses, taken)
        owner = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(start))
        place = {int(old): new for new, old in enumerate(taken)} if self.residues else {}
        residues = {place[clause]: sources for clause, sources in self.residues.items() if clause in place}
        return Rows(self.table.take(pa.array(rows)), replace(clauses, owner=owner), residues)

    def by_id(self) -> Rows:
        """The same in ascending order of id."""
        order = pc.sort_indices(self.ids()).to_numpy()
        return self if np.array_equal(order, np.arange(len(order))) else self.take(order.astype(np.int64))


def concat_rows(parts: Sequence[Rows]) -> Rows:
    table = pa.concat_tables([part.table for part in parts], promote_options="default").combine_chunks()
    clauses = concat_clauses([part.clauses for part in parts], np.cumsum([0, *(len(part) for part in parts)])[:-1].tolist())
    residues: dict[int, tuple[str, ...]] = {}
    base = 0
    for part in parts:
        residues |= {base + clause: sources for clause, sources in part.residues.items()}
        base += len(part.clauses)
    return Rows(table, clauses, residues)


def rows_of(schema: Schema, vocabularies: Vocabularies, subscriptions: Sequence[Subscription]) -> Rows:
    """Rows of subscriptions held as objects."""
    clauses = [clause for subscription in subscriptions for clause in subscription.clauses]
    owner = [row for row, subscription in enumerate(subscriptions) for _ in subscription.clauses]
    residues = {i: tuple(r.source for r in clause.residue) for i, clause in enumerate(clauses) if clause.residue}
    return Rows(ranking_table(subscriptions), encode_clauses(schema, vocabularies, clauses, owner), residues)


def rows_of_batch(batch: SubscriptionBatch, since: int) -> Rows:
    """Rows of a table that was read in bulk; those with a window stand since then."""
    columns = {"id": batch.ids.cast(pa.string())}
    columns |= {name: column.cast(RANKING[name]) for name, column in batch.ranking.columns.items()}
    columns |= {name + WEIGHT: column for name, column in batch.ranking.weights.items()}
    if batch.filters is not None:
        columns["filter"] = batch.table["filter"].cast(RANKING["filter"])
    if not columns.keys().isdisjoint(("k", "window", "digest")):
        columns["since"] = pa.array(np.full(len(batch), since), RANKING["since"])
    clauses = batch.clauses
    residues = {}
    for clause in np.flatnonzero(clauses.residue).tolist():
        assert batch.filters is not None
        row = int(clauses.owner[clause])
        first = int(np.searchsorted(clauses.owner, row))
        compiled = batch.compiled[int(batch.filters.index[row])][clause - first]
        residues[clause] = tuple(residue.source for residue in compiled.residue)
    return Rows(pa.table(columns), clauses, residues)


def ranking_table(subscriptions: Sequence[Subscription]) -> pa.Table:
    """Ids, and the ranking fields in which anybody differs from the defaults."""
    columns = {"id": pa.array([s.id for s in subscriptions], pa.string())}
    for name, values in _ranking(subscriptions).items():
        if values.count(None) < len(values):
            columns[name] = pa.array(values, RANKING[name])
    for name in dict.fromkeys([name for s in subscriptions if s.weights for name in s.weights]):
        columns[name + WEIGHT] = pa.array([s.weights.get(name) for s in subscriptions], pa.float64())
    return pa.table(columns)


def _ranking(subscriptions: Sequence[Subscription]) -> dict[str, list[Any]]:
    """The columns of RANKING, None for the default."""
    similarity = [s.similarity or (None, None) for s in subscriptions]
    return {
        "score": [s.score if s.score != 1.0 else None for s in subscriptions],
        "formula": [s.score_source for s in subscriptions],
        "alpha": [alpha for alpha, _ in similarity],
        "theta": [theta for _, theta in similarity],
        "k": [s.k for s in subscriptions],
        "window": [None if s.window is None else str(s.window) for s in subscriptions],
        "by": [s.by for s in subscriptions],
        "expires": [s.expires for s in subscriptions],
        "owner": [s.owner for s in subscriptions],
        "error": [s.error for s in subscriptions],
        "since": [s.since for s in subscriptions],
        "tags": [s.tags or None for s in subscriptions],
        "filter": [s.filter for s in subscriptions],
        "within": [None if s.within is None else (*s.within[0], s.within[1]) for s in subscriptions],
        "centre": [s.centre for s in subscriptions],
        "per": [s.per for s in subscriptions],
        "tz": [s.tz for s in subscriptions],
        **{name: [getattr(s, name) for s in subscriptions] for name in PACES},
    }


def fields_at(schema: Schema, table: pa.Table, row: int) -> dict[str, Any]:
    """The fields of `Subscription`, beside its id and clauses, of one row of such a table."""
    if table.num_columns == 1:
        return {}
    one = table.slice(row, 1)
    given = {name: one[name].chunk(0) for name in table.column_names if name != "id"}
    kept = {name: given.pop(name)[0].as_py() for name in SOURCES if name in given}
    weights = {name.removesuffix(WEIGHT): given.pop(name) for name in list(given) if name.endswith(WEIGHT)}
    if (circle := kept.get("within")) is not None:
        kept["within"] = ((circle[0], circle[1]), circle[2])
    if (centre := kept.get("centre")) is not None:
        kept["centre"] = tuple(centre)
    return {**kept, **Rankings(given, weights).at(schema, 0)}
