"""From what segments and the memtable found to answers: scores, expiries, order, the best k."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.match.answers.results import Match
from tidings.match.store.segment import Segment
from tidings.match.store.sorted_ids import buffers, compare
from tidings.match.store.store import Found
from tidings.model.columns.arrays import Vocabularies
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Values

ROW = "row"


def scores(
    segment: Segment, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: Callable[[int], Values]
) -> NDArray[np.float64]:
    """The score of each match: static, or the subscription's formula of the event's attributes."""
    score = segment.score[ordinal] if segment.scored else np.ones(len(ordinal))
    if segment.formulas:
        for i in np.flatnonzero(np.isin(ordinal, list(segment.formulas))):
            score[i] = segment.formulas[int(ordinal[i])](values(int(event[i])))
    return score


def unexpired(
    segment: Segment, event: NDArray[np.int32], ordinal: NDArray[np.int32], time: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    if segment.expires is None:
        return event, ordinal
    live = segment.expires[ordinal] > time
    return event[live], ordinal[live]


def is_live(subscription: Subscription, time: int) -> bool:
    return subscription.expires is None or time < subscription.expires


def match_list(
    id: str,
    found: Sequence[tuple[Segment, NDArray[np.int32]]],
    fresh: Sequence[Subscription],
    values: Values,
    k: int | None,
    time: int,
    similar: Sequence[tuple[int, Subscription, float]] = (),
) -> list[Match]:
    """The matches of one event: by id, or the k best by (score desc, id asc)."""
    matches = [Match(id, s.id, s.score_of(values)) for s in fresh if is_live(s, time)]
    matches += [Match(id, s.id, score) for _, s, score in similar if is_live(s, time)]
    for segment, ordinal in found:
        if len(ordinal):
            event, ordinal = unexpired(segment, ordinal, ordinal, time)
            score = scores(segment, event, ordinal, lambda _: values)
            matches += map(Match, [id] * len(ordinal), segment.names.take(ordinal), score.tolist())
    return ordered(matches, k)


def ordered(matches: list[Match], k: int | None) -> list[Match]:
    """By id, or the k best by (score desc, id asc)."""
    if len(matches) < 2:
        return matches if k is None else matches[:k]
    if k is None:
        return sorted(matches, key=lambda match: match.subscription)
    return sorted(matches, key=lambda match: (-match.score, match.subscription))[:k]


def match_table(
    ids: pa.Array,
    found: Sequence[Found],
    fresh: Sequence[tuple[int, Subscription]],
    values: Callable[[int], Values],
    k: int | None,
    time: int,
    similar: Sequence[tuple[int, Subscription, float]] = (),
) -> pa.Table:
    """(row, event, subscription, score) of every match of a batch, in order of the events."""
    parts = []
    for segment, event, ordinal, _ in found:
        event, ordinal = unexpired(segment, event, ordinal, time)
        score = scores(segment, event, ordinal, values)
        parts.append(table_of(event, segment.names.strings.take(pa.array(ordinal)), score))
    others = [(row, s.id, s.score_of(values(row))) for row, s in fresh if is_live(s, time)]
    others += [(row, s.id, score) for row, s, score in similar if is_live(s, time)]
    if others:
        rows, named, score_of = zip(*sorted(others), strict=True)
        parts.append(table_of(np.array(rows, np.int32), pa.array(named, pa.string()), np.array(score_of)))
    table = (
        pa.concat_tables(parts).combine_chunks()
        if parts
        else table_of(np.empty(0, np.int32), pa.array([], pa.string()), np.empty(0))
    )
    if len(parts) > 1 and k is None:
        table = table.take(pa.array(in_order(table, [len(part) for part in parts])))
    if k is not None and not (len(parts) == 1 and found and found[0].best):
        table = best(table, k)
    return table.add_column(1, "event", ids.take(table[ROW].combine_chunks()))


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


def by_event(
    found: Sequence[Found],
    fresh: Sequence[tuple[int, Subscription]],
    events: Sequence[Event],
    vocabularies: Vocabularies,
    time: Callable[[int], int],
    similar: Sequence[tuple[int, Subscription, float]] = (),
) -> list[tuple[list[Match], list[tuple[Subscription, float]]]]:
    """For each event: the matches of subscriptions that have no ranking, by id; and those that have, with their scores."""
    sorted_out: list[tuple[list[Match], list[tuple[Subscription, float]]]] = [([], []) for _ in events]
    for row, s in fresh:
        _sort_in(sorted_out[row], events[row], s, time(row))
    for row, s, similarity in similar:
        _sort_in(sorted_out[row], events[row], s, time(row), similarity)
    for segment, event, ordinal, _ in found:
        ranked = segment.ranked[ordinal] if segment.ranked is not None else np.zeros(len(ordinal), np.bool_)
        for row, one in zip(event[ranked].tolist(), ordinal[ranked].tolist(), strict=True):
            _sort_in(sorted_out[row], events[row], segment.subscription(vocabularies, one), time(row))
        event, ordinal = event[~ranked], ordinal[~ranked]
        score = scores(segment, event, ordinal, lambda row: events[row].values)
        for row, one, id, value in zip(event.tolist(), ordinal.tolist(), segment.names.take(ordinal), score.tolist(), strict=True):
            if segment.expires is None or segment.expires[one] > time(row):
                sorted_out[row][0].append(Match(events[row].id, id, value))
    for plain, _ in sorted_out:
        plain.sort(key=lambda match: match.subscription)
    return sorted_out


def _sort_in(
    place: tuple[list[Match], list[tuple[Subscription, float]]],
    event: Event,
    s: Subscription,
    time: int,
    similarity: float | None = None,
) -> None:
    if is_live(s, time):
        score = s.score_of(event.values) if similarity is None else similarity
        if s.is_ranked:
            place[1].append((s, score))
        else:
            place[0].append(Match(event.id, s.id, score))
