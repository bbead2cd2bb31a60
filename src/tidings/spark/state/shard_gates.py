"""The gates of a shard of windows: what a member with a budget, a cooldown or a digest hears of what its window tells.

The gates are those of a topic (`topic.gates`); here are what they need of a subscription (`Pace`), and what an embedded topic would
ask its live events: the group of each event that concerns such a member, for as long as its list may still tell of it.

A member that has a pace and neither k nor window nor digest is told of every match, as it would be without (`matched`, at the
event's own time), whatever its window says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.match.answers.results import Notification, instant
from tidings.model.door.subscription import Subscription
from tidings.model.values.groups import group_of
from tidings.model.values.pace import PACES
from tidings.spark.state.notification_rows import notes_table
from tidings.spark.state.window_steps import Publications
from tidings.topic.gates import GATE, Gates
from tidings.windows.memory import NEVER

ASKED = ("k", "window", "per", "tz", "expires", *PACES)
"""The columns of a ranking that a pace depends on."""
PACED = pa.schema([("id", pa.string()), ("pace", pa.string())])
"""Whose pace is which, as JSON; null for none any more."""
FEW = 64


class ShardGates:
    def __init__(self) -> None:
        self.gates = Gates(keyed=False)
        self.paces: dict[str, str] = {}
        self._plain: set[str] = set()
        self._groups: dict[str, dict[str, int]] = {}
        self._matched: list[Notification] = []

    def __bool__(self) -> bool:
        return bool(self.paces)

    @property
    def next_instant(self) -> int:
        due = self.gates.next_instant if self.paces else None
        return NEVER if due is None else due

    def changed(self, ids: pa.StringArray, ranking: pa.Table) -> pa.Table:
        """Of these subscriptions, with the columns of ASKED, those whose pace is not what is known of it."""
        paced = np.zeros(len(ids), np.bool_)
        for name in PACES:
            paced |= ranking[name].is_valid().to_numpy()
        known = pc.is_in(ids, pa.array(list(self.paces), pa.string())).to_numpy(zero_copy_only=False)
        rows = pa.array(np.flatnonzero(paced | known))
        asked = zip(ids.take(rows).to_pylist(), ranking.take(rows).to_pylist(), strict=True)
        now = {id: pace_of(row) for id, row in asked}
        other = {id: pace for id, pace in now.items() if self.paces.get(id) != pace}
        return pa.table([list(other), list(other.values())], schema=PACED)

    def take(self, paced: pa.Table) -> None:
        for id, pace in zip(paced["id"].to_pylist(), paced["pace"].to_pylist(), strict=True):
            if pace is None:
                self.forget([id])
            else:
                self._go_on(id, pace)

    def _go_on(self, id: str, pace: str) -> None:
        subscription = paced_subscription(id, pace)
        self.paces[id] = pace
        self._plain.discard(id)
        if json.loads(pace)["window"] is None and not subscription.is_ranked:
            self._plain.add(id)
        self.gates.go_on(subscription)

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.gates.drop(id)
            self.paces.pop(id, None)
            self._plain.discard(id)
            self._groups.pop(id, None)

    def publishes(self, published: Publications, names: Sequence[str]) -> None:
        """Note the groups of what concerns members with a pace, and the matches of those who hear of every one."""
        rows = np.flatnonzero(np.isin(published.members, [n for n, name in enumerate(names) if name in self.paces]))
        if not len(rows):
            return
        event = np.searchsorted(published.starts, rows, side="right") - 1
        ids, times = published.ids.take(pa.array(event)).to_pylist(), published.time[event].tolist()
        own = published.members[rows].tolist(), published.groups[rows].tolist(), published.relevances[rows].tolist()
        for id, time, member, group, score in zip(ids, times, *own, strict=True):
            name = names[member]
            self._groups.setdefault(name, {})[id] = group
            if name in self._plain:
                self._matched.append(Notification(name, id, score, None, "matched", instant(time)))

    def hear(self, told: pa.Table, until: int) -> pa.Table:
        """What is heard of these notifications, and of what time brings up to and including an instant."""
        paced = pc.is_in(told["subscription"], pa.array(list(self.paces), pa.string()))
        rows = [row for row in told.filter(paced).drop_columns(["digest"]).to_pylist() if row["subscription"] not in self._plain]
        notes, self._matched = self._matched + [Notification(**row | {"at": instant(row["at"])}) for row in rows], []
        heard = self.gates.through(notes, until, self._group)
        return pa.concat_tables([told.filter(pc.invert(paced)), notes_table(heard)])

    def _group(self, note: Notification) -> int:
        known = self._groups.get(note.subscription, {}).get(note.event)
        return group_of(note.event) if known is None else known

    def settle(self, held: Mapping[str, set[str]]) -> None:
        """Forget the events that no list holds any more; `held` has the lists' events, of those that keep any."""
        for id, groups in self._groups.items():
            if id not in held:
                groups.clear()
            elif len(groups) > 2 * len(held[id]) + FEW:
                self._groups[id] = {event: group for event, group in groups.items() if event in held[id]}

    def table(self) -> dict[str, list[str]]:
        """All of it, for `restore`."""
        states = dict(self.gates.states(self.paces))
        groups = [json.dumps(self._groups.get(id, {})) for id in self.paces]
        named = {"id": list(self.paces), "pace": list(self.paces.values())}
        return named | {"state": [states[GATE + id] for id in self.paces], "groups": groups}

    @classmethod
    def restore(cls, found: Mapping[str, pa.Array]) -> ShardGates:
        made = cls()
        columns = [found[name].to_pylist() for name in ("id", "pace", "state", "groups")]
        made.gates.restore((GATE + id, state) for id, state in zip(columns[0], columns[2], strict=True))
        for id, pace, _, groups in zip(*columns, strict=True):
            made._go_on(id, pace)
            made._groups[id] = json.loads(groups)
        return made


def pace_of(ranking: Mapping[str, Any]) -> str | None:
    """What a gate needs of a subscription; None of one without a pace."""
    if all(ranking[name] is None for name in PACES):
        return None
    return json.dumps({name: ranking[name] for name in ASKED})


def paced_subscription(id: str, pace: str) -> Subscription:
    fields = json.loads(pace)
    del fields["window"]
    return Subscription(id, (), **fields)
