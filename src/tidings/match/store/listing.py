"""Subscriptions in order of id, page by page: of one owner, with one tag."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.store import Store
from tidings.model.door.subscription import Subscription

pc = lazily("pyarrow.compute")


def listed(store: Store, owner: str | None, tag: str | None, after: str | None, limit: int) -> list[Subscription]:
    """The first `limit` with an id above `after`. A segment is asked in columns, and only what is given becomes an object."""
    with store.lock:
        fresh = [s for s in store.memtable.subscriptions.values() if _is_asked(s, owner, tag) and (after is None or s.id > after)]
        fresh = heapq.nsmallest(limit, fresh, key=lambda subscription: subscription.id)
        places = [_packed(live, store.snapshot.seq, owner, tag, after) for live in store.snapshot.segments]
        found = heapq.merge(((s.id, -1, s) for s in fresh), *(_named(number, rows, store) for number, rows in enumerate(places)))
        return [
            held if isinstance(held, Subscription) else store.snapshot.segments[number].subscription(held)
            for _, number, held in islice(found, limit)
        ]


def _is_asked(subscription: Subscription, owner: str | None, tag: str | None) -> bool:
    return owner in (None, subscription.owner) and (tag is None or tag in subscription.tags)


def _named(number: int, ordinals: NDArray[np.int64], store: Store) -> Iterator[tuple[str, int, Subscription | int]]:
    """An id stands in one place, so no two compare beyond it."""
    names = store.snapshot.segments[number].segment.names
    for ordinal in ordinals.tolist():
        yield names[ordinal], number, ordinal


def _packed(live: LiveSegment, seq: int, owner: str | None, tag: str | None, after: str | None) -> NDArray[np.int64]:
    """Ordinals, which ascend as ids do."""
    names, table = live.segment.names, live.segment.table
    ordinals = live.live(seq)
    if after is not None:
        ordinals = ordinals[ordinals >= bisect_right(range(len(names)), after, key=names.__getitem__)]
    if owner is not None:
        ordinals = ordinals[_holders(table, "owner", owner)[ordinals]]
    if tag is not None:
        ordinals = ordinals[_holders(table, "tags", tag)[ordinals]]
    return ordinals


def _holders(table: pa.Table, name: str, text: str) -> NDArray[np.bool_]:
    """Whether each row's string is `text`, or its list has it."""
    held = np.zeros(len(table), np.bool_)
    if name not in table.column_names:
        return held
    column = table[name].combine_chunks()
    if not pa.types.is_list(column.type):
        held[:] = pc.equal(column, text).fill_null(False).to_numpy(zero_copy_only=False)
        return held
    here = pc.equal(column.flatten(), text)
    held[pc.list_parent_indices(column).filter(here).to_numpy()] = True
    return held
