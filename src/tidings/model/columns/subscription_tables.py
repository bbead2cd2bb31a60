"""Tables of subscriptions: Arrow to the arrays that indexes see. No Python per row but for rows that are refused.

A table of subscriptions has `id`, ranking columns (`rankings`), and either predicate columns (`predicates`) or `filter`, CQL2 as
text or JSON, of which each distinct one is compiled once; null matches every event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.errors import FilterError, SubscriptionError
from tidings.model.columns.arrays import ClauseColumns, Vocabularies, encode_clauses, ragged_take, rows_of, starts, take_clauses
from tidings.model.columns.arrow import Strings, TableReader
from tidings.model.columns.gather import decode_clause
from tidings.model.columns.predicates import PredicateColumns, predicate_columns, read_predicates
from tidings.model.columns.rankings import FIELDS, Rankings, read_rankings
from tidings.model.columns.tables import read_rows
from tidings.model.door.subscription import BLANK, Subscription
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter
from tidings.model.values.schema import Schema


@dataclass(slots=True)
class SubscriptionBatch:
    """n subscriptions; `clauses.owner` is the row here. `table`, `rows` and `refused` as in `EventBatch`.

    `filters` (distinct texts, and which one a row has) and `compiled` (the clauses of each) are of a table with a `filter` column.
    """

    schema: Schema
    vocabularies: Vocabularies
    table: pa.Table
    ids: pa.Array
    clauses: ClauseColumns
    ranking: Rankings
    filters: Strings | None
    compiled: list[tuple[Clause, ...]]
    rows: NDArray[np.int64]
    refused: list[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.ids)


def subscriptions_from_arrow(
    schema: Schema, vocabularies: Vocabularies, table: pa.Table | pa.RecordBatch, on_error: str = "raise"
) -> SubscriptionBatch:
    """The table's subscriptions. Bad rows raise one BulkError or are left out (`skip`).

    Strings that are new to the vocabularies are added, once everything else is well.
    """
    read, taken, rows, refused = read_rows(
        table, SubscriptionError, "subscriptions", lambda reader: _read_subscriptions(schema, reader), on_error
    )
    return SubscriptionBatch(
        schema=schema,
        vocabularies=vocabularies,
        table=taken,
        ids=read.ids,
        clauses=read.encode(schema, vocabularies),
        ranking=read.ranking,
        filters=read.filters,
        compiled=read.compiled,
        rows=rows,
        refused=refused,
    )


def subscription_at(batch: SubscriptionBatch, row: int) -> Subscription:
    """One row as an object."""
    if batch.filters is None:
        first, last = np.searchsorted(batch.clauses.owner, [row, row + 1])
        clauses = tuple(decode_clause(batch.schema, batch.vocabularies, batch.clauses, clause) for clause in range(first, last))
        source = None
    else:
        filter = batch.filters.index[row]
        clauses, source = ((Clause(),), None) if filter < 0 else (batch.compiled[filter], batch.filters.distinct[filter])
    return BLANK.but(id=batch.ids[row].as_py(), clauses=clauses, filter=source, **batch.ranking.at(batch.schema, row))


@dataclass(slots=True)
class _Subscriptions:
    """Validated columns, before any code is asked of a vocabulary."""

    ids: pa.Array
    ranking: Rankings
    predicates: PredicateColumns
    filters: Strings | None
    compiled: list[tuple[Clause, ...]]

    def encode(self, schema: Schema, vocabularies: Vocabularies) -> ClauseColumns:
        if self.filters is None:
            return self.predicates.encode(schema, vocabularies)
        # Row -1, no filter, is the one clause that is true, after all others.
        compiled = [*self.compiled, (Clause(),)]
        start = starts(np.array([len(clauses) for clauses in compiled], np.int64))
        distinct = encode_clauses(
            schema, vocabularies, [clause for clauses in compiled for clause in clauses], [0] * int(start[-1])
        )
        filter = np.where(self.filters.index < 0, len(self.compiled), self.filters.index)
        clause_start, clause = ragged_take(start, filter)
        return take_clauses(distinct, clause, rows_of(clause_start).astype(np.int32))


def subscription_columns(schema: Schema) -> list[str]:
    """The columns that a table of subscriptions may have."""
    return ["id", "filter", *FIELDS, *predicate_columns(schema), *(f"{name}.weight" for name in schema)]


def _read_subscriptions(schema: Schema, reader: TableReader) -> _Subscriptions:
    names = reader.table.column_names
    predicates = predicate_columns(schema)
    accepted = subscription_columns(schema)
    for name in names:
        if name not in accepted:
            raise SubscriptionError(f"column {name!r} is unknown: a table of subscriptions has {', '.join(accepted)}")
    if "id" not in names:
        raise SubscriptionError("column 'id' is missing: every subscription has an id")
    if "filter" in names and not set(names).isdisjoint(predicates):
        both = ", ".join(name for name in names if name in predicates)
        raise SubscriptionError(f"columns filter and {both} stand in one table: a filter column or predicate columns are accepted")
    filters, compiled = _read_filters(schema, reader) if "filter" in names else (None, [])
    columns = read_predicates(schema, reader)
    ranking = read_rankings(schema, reader)
    return _Subscriptions(reader.ids("id", distinct=True, required=True), ranking, columns, filters, compiled)


def _read_filters(schema: Schema, reader: TableReader) -> tuple[Strings, list[tuple[Clause, ...]]]:
    """The distinct filters and the clauses of each."""
    filters = reader.strings("filter")
    compiled: list[tuple[Clause, ...]] = []
    sentences: dict[int, str] = {}
    for number, text in enumerate(filters.distinct):
        try:
            compiled.append(tuple(compile_filter(schema, text)))
        except FilterError as error:
            compiled.append(())
            sentences[number] = str(error)
    if sentences:
        reader.refuse(np.isin(filters.index, list(sentences)), lambda row: sentences[int(filters.index[row])])
    return filters, compiled
