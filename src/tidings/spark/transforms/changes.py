"""What a table of subscription changes says: of each id the last change, and whether it comes or goes.

Of the changes of one id in a micro-batch the one that is greatest in the first of ORDERS that the changes have counts; `seq` and
`time` are the caller's, `offset` is Kafka's, in which all of a key stand in one partition. Rows themselves have no order, since a
micro-batch may have many files and partitions: two changes of one id that no column tells apart are refused.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.errors import SubscriptionError, shown
from tidings.model.door.event import parse_json

OPERATIONS = ("upsert", "delete")
ORDERS = ("seq", "time", "offset")

Refused: TypeAlias = list[dict[str, str]]


def gone_and_set(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of columnar changes that delete, and those that set, without what is not a subscription's."""
    deletes = pa.array(np.zeros(len(table), np.bool_))
    if "op" in table.column_names:
        unknown = [op for op in table["op"].unique().to_pylist() if op not in (None, *OPERATIONS)]
        if unknown:
            raise SubscriptionError(f"op is {unknown[0]!r}: 'upsert' or 'delete' is accepted")
        deletes = pc.equal(table["op"], "delete").fill_null(False).combine_chunks()
    own = table.drop_columns([name for name in ("op", *ORDERS) if name in table.column_names])
    return table.filter(deletes), own.filter(pc.invert(deletes))


def read_object(value: str | bytes) -> dict[str, Any]:
    read = parse_json(value)
    if not isinstance(read, dict):
        raise SubscriptionError(f"subscription {shown(read)}: an object as {{'filter': ..., 'k': ...}} is accepted")
    return read


def last_of_each(table: pa.Table, name: str) -> tuple[pa.Table, Refused]:
    """The last change of each id, and the ids of which no column says which is the last."""
    ordered_by = next((column for column in ORDERS if column in table.column_names), None)
    id = table[name].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    rank = np.zeros(len(table), np.int64) if ordered_by is None else _ranks(table[ordered_by].combine_chunks())
    order = np.lexsort((rank, id))
    id, rank = id[order], rank[order]
    last = np.append(id[1:] != id[:-1], True)
    tied = np.append(False, (id[1:] == id[:-1]) & (rank[1:] == rank[:-1]))
    unsure = map(text_of, table[name].take(pa.array(order[last & tied])).to_pylist())
    why = "in several changes of one micro-batch: a column 'seq' or 'time' that differs in them is accepted, to tell the last"
    refused = [{"id": one, "reason": f"{name} is {one!r} {why}"} for one in unsure]
    return table.take(pa.array(np.sort(order[last & ~tied]))), refused


def _ranks(column: pa.Array) -> NDArray[np.int64]:
    """The place of each value among the distinct ones; -1 for null."""
    coded = column.dictionary_encode()
    place = np.append(np.empty(len(coded.dictionary), np.int64), -1)
    place[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    ranks: NDArray[np.int64] = place[coded.indices.fill_null(len(coded.dictionary)).to_numpy()]
    return ranks


def text_of(id: str | bytes) -> str:
    return id.decode() if isinstance(id, bytes) else id
