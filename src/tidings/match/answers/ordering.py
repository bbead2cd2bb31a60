"""From hits to answers: in order of id, or the best k, as a table or as objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import repeat
from operator import itemgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.match.answers.results import Match
from tidings.match.store.hits import NO_ROWS, Found, Hits
from tidings.match.store.sorted_ids import buffers, compare
from tidings.model.columns.short_arrays import fixed_array, same_text

ROW = "row"
_STRING, _SCORE = pa.string(), pa.float64()
MATCHES = pa.schema([("event", _STRING), ("subscription", _STRING), ("score", _SCORE)])
_match = partial(tuple.__new__, Match)
"""From a row of its fields, at a third of the price of calling the class."""


@cache
def _no_matches() -> pa.Table:
    """Not made before somebody asks: pyarrow imports pandas for it."""
    return MATCHES.empty_table()


def match_list(id: str, hits: Hits, k: int | None = None) -> list[Match]:
    """The matches of one event: by id, or the k best by (score desc, id asc)."""
    matches: list[Match] = []
    for found in hits:
        matches += map(_match, zip(repeat(id), found.source.names(found.ordinal), found.score.tolist(), strict=False))
    if len(hits) == 1 and (k is None or hits[0].best):
        return matches
    return ordered(matches, k)


def ordered(matches: list[Match], k: int | None) -> list[Match]:
    """By id, or the k best by (score desc, id asc)."""
    if len(matches) < 2:
        return matches if k is None else matches[:k]
    if k is None:
        return sorted(matches, key=itemgetter(1))
    return sorted(matches, key=lambda match: (-match.score, match.subscription))[:k]


def match_rows(matches: Sequence[Match]) -> pa.Table:
    """Matches as `match_batch` gives them."""
    event, subscription, score = zip(*matches, strict=True) if matches else ((), (), ())
    columns = [pa.array(event, _STRING), pa.array(subscription, _STRING), fixed_array(np.array(score, np.float64), _SCORE)]
    return pa.Table.from_arrays(columns, schema=MATCHES)


def single_table(id: str, hits: Hits, k: int | None) -> pa.Table:
    """The matches of one event as `match_batch` gives them: in order as they were found, if one place has them all."""
    if not hits:
        return _no_matches()
    if len(hits) != 1 or (k is not None and not hits[0].best):
        return match_rows(match_list(id, hits, k))
    (found,) = hits
    columns = [same_text(id, len(found.score)), found.source.ids(found.ordinal), fixed_array(found.score, _SCORE)]
    return pa.Table.from_arrays(columns, schema=MATCHES)


def match_table(ids: pa.Array, hits: Hits, k: int | None) -> pa.Table:
    """(row, event, subscription, score) of every match of a batch, in order of the events."""
    hits = [found for found in hits if len(found.event)]
    if not hits:
        table = table_of(NO_ROWS, pa.array([], pa.string()), np.empty(0))
    else:
        table = pa.concat_tables([_named(found) for found in hits]).combine_chunks()
    if k is None and len(hits) > 1:
        table = table.take(pa.array(in_order(table, [len(found.event) for found in hits])))
    if k is not None and not (len(hits) == 1 and hits[0].best):
        table = best(table, k)
    return table.add_column(1, "event", ids.take(table[ROW].combine_chunks()))


def _named(found: Found) -> pa.Table:
    return table_of(found.event, found.source.ids(found.ordinal), found.score)


def in_order(table: pa.Table, sizes: Sequence[int]) -> NDArray[np.int64]:
    """The order of (row, subscription) of a table made of parts that are each in that order: merged, the small ones first."""
    row, (start, text) = table[ROW].to_numpy(), buffers(table["subscription"].combine_chunks())
    ends = np.cumsum(sizes)
    runs = sorted((np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)), key=len)
    order = runs[0]
    for run in runs[1:]:
        order = merged(row, start, text, order, run)
    return order


@kernel
def merged(
    row: NDArray[np.int32], start: NDArray[np.int32], text: NDArray[np.uint8], a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Two ascending lists of places in the table as one."""
    order = np.empty(a.size + b.size, np.int64)
    i = j = 0
    for at in range(order.size):
        first = j == b.size
        if i < a.size and j < b.size:
            x, y = a[i], b[j]
            if row[x] == row[y]:
                first = compare(text, start[x], start[x + 1], text, start[y], start[y + 1]) < 0
            else:
                first = row[x] < row[y]
        if first:
            order[at] = a[i]
            i += 1
        else:
            order[at] = b[j]
            j += 1
    return order


def best(table: pa.Table, k: int) -> pa.Table:
    """The k best of each row by (score desc, id asc)."""
    table = table.sort_by([(ROW, "ascending"), ("score", "descending"), ("subscription", "ascending")])
    row = table[ROW].to_numpy()
    return table.filter(pa.array(np.arange(len(row)) - np.searchsorted(row, row) < k))


def table_of(row: NDArray[np.int32], subscription: pa.Array, score: NDArray[np.float64]) -> pa.Table:
    return pa.table({ROW: pa.array(row, pa.int32()), "subscription": subscription, "score": pa.array(score, pa.float64())})
