"""Whose subscriptions they are: by id for every notification that is told, by owner for who lists his own.

Held in memory beside the topic, of owned subscriptions only; read from the topic's columns when it is opened.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.match.store.store import Store


class Owners:
    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._ids: defaultdict[str, set[str]] = defaultdict(set)

    @classmethod
    def of(cls, store: Store) -> Owners:
        made = cls()
        with store.lock:
            for subscription in store.memtable.subscriptions.values():
                made.set(subscription.id, subscription.owner)
            for live in store.snapshot.segments:
                table = live.segment.table
                if "owner" in table.column_names:
                    here = table.select(["id", "owner"]).take(pa.array(live.live(store.snapshot.seq)))
                    owned = here.filter(pc.is_valid(here["owner"]))
                    made.set_many(owned["id"].to_pylist(), owned["owner"].to_pylist())
        return made

    def __call__(self, id: str) -> str | None:
        """The owner of a subscription."""
        return self._owner.get(id)

    def set(self, id: str, owner: str | None) -> None:
        before = self._owner.pop(id, None)
        if before is not None:
            self._ids[before].discard(id)
            if not self._ids[before]:
                del self._ids[before]
        if owner is not None:
            self._owner[id] = owner
            self._ids[owner].add(id)

    def set_many(self, ids: Iterable[str], owners: Iterable[str | None]) -> None:
        for id, owner in zip(ids, owners, strict=True):
            self.set(id, owner)

    def count(self, owner: str) -> int:
        return len(self._ids.get(owner, ()))

    def page(self, owner: str, after: str, limit: int) -> list[str]:
        """His ids above `after`, in order."""
        return heapq.nsmallest(limit, (id for id in self._ids.get(owner, ()) if id > after))


def page_of_all(store: Store, after: str, limit: int) -> list[str]:
    """The ids of a topic above `after`, in order."""
    with store.lock:
        found = [id for id in store.memtable.subscriptions if id > after]
        for live in store.snapshot.segments:
            ids = live.ids(np.asarray(live.live(store.snapshot.seq)))
            found += heapq.nsmallest(limit, ids.filter(pc.greater(ids, after)).to_pylist())
    return heapq.nsmallest(limit, found)
