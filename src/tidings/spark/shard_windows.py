"""The windows of one shard of subscriptions: what the embedded publisher does, for the matches that come packed.

Order: within a batch events are published by (time, id), whatever the partition they came from; then the clock moves to the latest
time that any partition saw. An event that is older than the clock is late: it is taken with its own time, competes while that
lies in the window, and is notified at the clock's time (`engine.windows`). Nothing is dropped for being late, and no watermark is
needed: windows themselves bound the state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.engine.names import ABSENT
from tidings.engine.ranked_lists import WHY, EntryColumns
from tidings.engine.results import Notification
from tidings.engine.view import View
from tidings.engine.windows import Windows
from tidings.model.window import parse_window
from tidings.spark.columns import NOTIFICATION
from tidings.spark.shards import WINDOW, from_bytes

Activation = tuple[Any, ...]
"""The values of WINDOW."""


class ShardWindows:
    def __init__(self) -> None:
        self.windows = Windows()
        self.activations: dict[str, Activation] = {}
        self.manifest = 0
        self._gone: set[str] = set()

    def keep(self, view: View) -> None:
        """Forget the windows of subscriptions that are gone or have another window now."""
        if view.manifest.number == self.manifest:
            return
        self.manifest = view.manifest.number
        ids = list(self.activations)
        place = view.locate(pa.array(ids, pa.string()))
        now = zip(*(view.ranking(place, WINDOW)[name].to_pylist() for name in WINDOW), strict=True)
        for id, segment, activation in zip(ids, place.segment.tolist(), now, strict=True):
            if segment == ABSENT or activation != self.activations[id]:
                self.forget(id)

    def forget(self, id: str) -> None:
        del self.activations[id]
        self.windows.deactivate(id)
        self._gone.add(id)

    def publish(self, bodies: Iterable[bytes], clock: int) -> pa.Table:
        """The notifications of a batch."""
        tables = [from_bytes(body) for body in bodies if body]
        parts = []
        if tables:
            rows = pa.concat_tables(tables, promote_options="default").sort_by([("time", "ascending"), ("event", "ascending")])
            plain = pc.and_(rows["k"].is_null(), rows["window"].is_null())
            named = rows["subscription"].is_valid()
            parts.append(of_plain(rows.filter(pc.and_(plain, named))))
            ranked = pc.and_(pc.invert(plain), named).combine_chunks()
            parts.append(self._table(self._publish(rows.combine_chunks(), ranked.to_numpy(zero_copy_only=False))))
        parts.append(self.advance(clock))
        return pa.concat_tables(parts)

    def advance(self, clock: int) -> pa.Table:
        entries = self.windows.advance(clock)
        made = [(e.subscription, e.event, e.relevance, e.rank or None, e.why, e.at) for e in entries]
        columns = list(zip(*made, strict=True)) or [()] * 6
        return notification_table(*columns)

    def _publish(self, rows: pa.Table, concerned: NDArray[np.bool_]) -> EntryColumns:
        """Publish every event, also one that concerns nobody: count windows count it."""
        event = rows["event"].combine_chunks()
        code = event.dictionary_encode().indices.to_numpy()
        first = np.flatnonzero(np.diff(code, prepend=-1))
        starts = np.concatenate([[0], np.cumsum(concerned)])[np.append(first, len(code))]
        named = rows.filter(pa.array(concerned))
        return self.windows.publish_batch(
            event.take(pa.array(first)),
            rows["time"].to_numpy()[first],
            rows["expires"].to_numpy()[first],
            starts,
            self._slots(named),
            named["score"].to_numpy(),
        )

    def _slots(self, named: pa.Table) -> NDArray[np.int32]:
        """The slot of each row's window; those that match for the first time are activated."""
        coded = named["subscription"].combine_chunks().dictionary_encode()
        ids = coded.dictionary.to_pylist()
        new = [place for place, id in enumerate(ids) if id not in self.activations]
        if new:
            _, first = np.unique(coded.indices.to_numpy(), return_index=True)
            windows = named.select(WINDOW).take(pa.array(first[new]))
            for place, activation in zip(new, zip(*(windows[name].to_pylist() for name in WINDOW), strict=True), strict=True):
                self.activate(ids[place], activation)
        slots: NDArray[np.int32] = np.array([self.windows.slot(id) for id in ids], np.int32)[coded.indices.to_numpy()]
        return slots

    def activate(self, id: str, activation: Activation) -> None:
        k, window, error, since, _ = activation
        self.windows.activate(id, k, None if window is None else parse_window(window), since, error)
        self.activations[id] = activation

    def _table(self, entries: EntryColumns) -> pa.Table:
        rank = pa.array(entries.rank, mask=entries.rank == 0)
        why = pa.array(WHY).take(pa.array(entries.promoted.astype(np.int8)))
        return notification_table(
            [self.windows.name(slot) for slot in entries.slot.tolist()], entries.event, entries.relevance, rank, why, entries.at
        )

    def changes(self) -> dict[str, dict[str, Any] | None]:
        """The windows that changed since last asked, None for those that are gone."""
        changed = self.windows.changed() & self.activations.keys()
        made: dict[str, dict[str, Any] | None] = dict.fromkeys(self._gone - self.activations.keys())
        made |= {id: self.state_of(id) for id in changed}
        self._gone.clear()
        return made

    def state_of(self, id: str) -> dict[str, Any]:
        return {**self.windows.state_of(id), "activation": self.activations[id]}

    @classmethod
    def restore(cls, clock: int | None, publications: int, manifest: int, deltas: Iterable[bytes]) -> ShardWindows:
        """From the changes, oldest first."""
        states: dict[str, Mapping[str, Any]] = {}
        for delta in deltas:
            for id, state in json.loads(delta).items():
                states.pop(id, None) if state is None else states.update({id: state})
        made = cls()
        made.windows = Windows.restore({"clock": clock, "publications": publications, "subscriptions": states})
        made.activations = {id: tuple(state["activation"]) for id, state in states.items()}
        made.manifest = manifest
        return made


def of_plain(rows: pa.Table) -> pa.Table:
    """Whoever has no ranking hears of every match."""
    nothing = pa.nulls(len(rows), pa.int32())
    why = pa.array(["matched"] * len(rows), pa.string())
    return notification_table(rows["subscription"], rows["event"], rows["score"], nothing, why, rows["time"])


def notification_table(subscription: Any, event: Any, score: Any, rank: Any, why: Any, at: Any) -> pa.Table:
    columns = {"subscription": subscription, "event": event, "score": score, "rank": rank, "why": why, "at": at}
    kinds = NOTIFICATION | {"at": pa.int64()}
    return pa.table({name: _cast(column, kinds[name]) for name, column in columns.items()})


def _cast(column: Any, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column.cast(kind)
    return pa.array(column, kind)


def with_ids(notifications: pa.Table) -> pa.Table:
    """The columns of NOTIFICATION: the stable id of each first, the time as a timestamp."""
    at = notifications["at"].cast(NOTIFICATION["at"])
    texts: Sequence[Any] = [notifications[name].to_pylist() for name in ("subscription", "event", "why")]
    whens = at.to_pylist()
    ids = [Notification(s, e, 0.0, None, why, when).id for s, e, why, when in zip(*texts, whens, strict=True)]
    table = notifications.set_column(notifications.column_names.index("at"), "at", at)
    return table.add_column(0, "id", pa.array(ids, pa.string())).select(list(NOTIFICATION))
