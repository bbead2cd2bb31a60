"""Whose subscriptions they are: asked for every notification that is told, and how many one has.

Held in memory beside the topic, of owned subscriptions only; read from the topic's columns when it is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from tidings.match.store.store import Store


class Owners:
    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._count: Counter[str] = Counter()

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
            self._count[before] -= 1
        if owner is not None:
            self._owner[id] = owner
            self._count[owner] += 1

    def set_many(self, ids: Iterable[str], owners: Iterable[str | None]) -> None:
        for id, owner in zip(ids, owners, strict=True):
            self.set(id, owner)

    @contextmanager
    def changing(self, id: str, owner: object) -> Iterator[None]:
        """What the change tells is told to the new owner; if it fails, all is as before."""
        before = self(id)
        self.set(id, owner if isinstance(owner, str) else None)
        try:
            yield
        except BaseException:
            self.set(id, before)
            raise

    def count(self, owner: str) -> int:
        return self._count[owner]
