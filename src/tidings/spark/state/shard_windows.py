"""The windows of one shard of subscriptions: what the embedded publisher does, for the matches that come packed.

A *member* is a subscription with k or a window that has matched; its number in the shard is its slot in `SlotWindows`. Whoever has
neither hears of every match and is no member.

Order: within a batch events are published by (time, id), whatever the partition they came from; then time goes on to the batch's
clock. Two rules, of which a query has one (`notify`):

* As they come: the clock is the latest time that any partition has seen. An event that is older than the clock is late: it is
  taken with its own time, competes while that lies in the window, and is notified at the clock's time (`windows.windows`).
* By event time: the clock is the query's watermark. What is published later than that waits in `pending`, and is published in order
  when the clock has reached it, so the answers do not depend on the order of arrival. What comes when the clock has passed its time
  is late, as above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.durable.manifest_view import Place, View
from tidings.match.store.sorted_ids import ABSENT
from tidings.model.columns.arrays import starts
from tidings.model.values.calendar import Calendar
from tidings.model.values.pace import PACES
from tidings.model.values.window import parse_window
from tidings.spark.state.notification_rows import notification_table
from tidings.spark.state.shard_gates import ASKED, PACED, ShardGates
from tidings.spark.state.shard_records import Matches, matches_of
from tidings.spark.state.state_format import bundle, unbundle
from tidings.spark.state.window_steps import NOTHING, Publications, WindowStep, joined, numbers, publications, split, tables_of
from tidings.windows.entries import WHY, Entries
from tidings.windows.memory import ALL, BEGINNING, EVENT, NEVER, Records, padded
from tidings.windows.publishing import NO_GROUPS
from tidings.windows.slots import CANDIDATE, SAVED_LIST, Saved, SlotWindows, Terms

WINDOW = {
    "k": pa.int32(),
    "window": pa.string(),
    "error": pa.float64(),
    "since": pa.int64(),
    "by": pa.string(),
    "per": pa.string(),
    "tz": pa.string(),
}
"""What makes a window; a subscription whose answers change here begins anew."""
UNKNOWN, PLAIN = -1, -2
TEXTS = ("window", "by", "per", "tz")
KNOWN = np.dtype([("k", "i8"), ("error", "f8"), ("since", "i8"), *((name, "i4") for name in TEXTS), ("live", "?")])
"""A member's window; texts by their number in `codes`, error 0 for none."""
NEWCOMERS = pa.schema([("member", pa.int32()), ("id", pa.string()), *WINDOW.items()])


class ShardWindows:
    def __init__(self, waits: bool = False) -> None:
        self.windows = SlotWindows()
        self.known = np.zeros(64, KNOWN)
        self.ids: list[str] = []
        self.codes: dict[str, dict[str | None, int]] = {name: {None: 0} for name in TEXTS}
        self.member: dict[str, int] = {}
        self._names: pa.StringArray | None = None
        self.manifest = 0
        self.gates = ShardGates()
        self.pending: Publications | None = NOTHING if waits else None

    def take(self, view: View, bodies: Iterable[bytes], clock: int) -> tuple[WindowStep, pa.Table]:
        """A batch: what it does to the shard, and whom it notifies."""
        gone, paced = self._outdated(view)
        self._forget(gone)
        self.manifest = view.manifest.identity
        matches = matches_of(bodies)
        if matches is None:
            step = WindowStep(clock, self.manifest, gone, NEWCOMERS.empty_table(), NOTHING, paced)
            return step, hearing(view, self._heard(step))
        members = self._members(matches.subscriptions)
        strange = members == UNKNOWN
        strangers = matches.subscriptions.filter(pa.array(strange))
        newcomers, of_newcomers = self._meet(view, strangers)
        self._join(newcomers)
        members[strange] = self._members(strangers)
        member = members[matches.subscription]
        paced = pa.concat_tables([paced, of_newcomers])
        step = WindowStep(clock, self.manifest, gone, newcomers, _published(matches, member), paced)
        plain = of_plain(matches, np.flatnonzero(member == PLAIN))
        return step, pa.concat_tables([plain, hearing(view, self._heard(step))])

    def repeat(self, step: WindowStep) -> None:
        """Do again what a batch did."""
        self._forget(step.gone)
        self.manifest = step.manifest
        self._join(all_columns(step.newcomers))
        if self.gates or (step.paced is not None and len(step.paced)):
            self._heard(step)
        else:
            self._publish(step)

    @property
    def wakes(self) -> int:
        """The first instant at which time alone does something here; NEVER if none."""
        waiting = NEVER if self.pending is None or not len(self.pending) else int(self.pending.time[0])
        return min(self.windows.next_instant, waiting, self.gates.next_instant)

    def _outdated(self, view: View) -> tuple[NDArray[np.int32], pa.Table]:
        """Members that are gone or have another window now, and who of the others has another pace. What was plain must be asked
        for again."""
        if view.manifest.identity == self.manifest:
            return np.zeros(0, np.int32), PACED.empty_table()
        members = np.flatnonzero(self.known["live"]).astype(np.int32)
        self.member = {self.ids[member]: member for member in members.tolist()}
        place = view.locate(pa.array(list(self.member), pa.string()))
        now, asked = self._coded(windows_of(view, place)), view.ranking(place, ASKED)
        other = (place.segment == ABSENT) | (now != self.known[members]) | without(asked, ("k", "window", *PACES))
        stay = pa.array(np.flatnonzero(~other))
        ids = pa.array(list(self.member), pa.string()).take(stay)
        return members[other], self.gates.changed(ids, asked.take(stay))

    def _forget(self, members: NDArray[np.int32]) -> None:
        if len(members):
            self.gates.forget(self.ids[member] for member in members.tolist())
            for member in members.tolist():
                self.member.pop(self.ids[member], None)
            self.known[members] = np.zeros((), KNOWN)
            self.windows.end(members)
            if self.pending is not None:
                self.pending = self.pending.without(members)

    def _members(self, ids: pa.StringArray) -> NDArray[np.int64]:
        known = self.member
        return np.array([known.get(id, UNKNOWN) for id in ids.to_pylist()], np.int64)

    def _meet(self, view: View, strange: pa.StringArray) -> tuple[pa.Table, pa.Table]:
        """Those who match for the first time, with their windows and numbers, and their paces; those without are noted as such."""
        if not len(strange):
            return NEWCOMERS.empty_table(), PACED.empty_table()
        place = view.locate(strange)
        ranking, asked = windows_of(view, place), view.ranking(place, ASKED)
        paced, plain = self.gates.changed(strange, asked), pa.array(without(asked, ("k", "window", *PACES)))
        self.member.update(dict.fromkeys(strange.filter(plain).to_pylist(), PLAIN))
        ranked = pc.invert(plain)
        found = ranking.filter(ranked)
        free = np.flatnonzero(~self.known["live"][: len(self.ids)])[: len(found)]
        fresh = np.arange(len(self.ids), len(self.ids) + len(found) - len(free))
        numbered = pa.array(np.concatenate([free, fresh]).astype(np.int32))
        columns = [numbered, strange.filter(ranked), *(found[name].combine_chunks() for name in WINDOW)]
        return pa.Table.from_arrays(columns, schema=NEWCOMERS), paced

    def _join(self, newcomers: pa.Table) -> None:
        if not len(newcomers):
            return
        members, ids = newcomers["member"].to_numpy(), newcomers["id"].to_pylist()
        count = max(len(self.ids), int(members.max()) + 1)
        self.ids += [""] * (count - len(self.ids))
        if count > len(self.known):
            self.known = padded(self.known, 2 * count)
        self._names = None
        for member, id in zip(members.tolist(), ids, strict=True):
            self.ids[member] = id
            self.member[id] = member
        known = self._coded(newcomers)
        self.known[members] = known
        spans = np.array([self._span(*kind) for kind in known[["window", "tz"]].tolist()], np.int64)
        per = known["per"] > 0
        self.windows.begin(members, Terms(known["k"], spans[:, 0], spans[:, 1], known["since"], known["error"], per))

    def _span(self, window: int, tz: int) -> tuple[int, int]:
        """Duration and count of a window by the numbers of its texts, NEVER for the side it lacks."""
        text, zone = (list(self.codes[name])[code] for name, code in (("window", window), ("tz", tz)))
        if text is None:
            return NEVER, NEVER
        read = parse_window(text)
        if read.calendar is not None:
            return self.windows.calendar(Calendar(read.calendar, zone or "UTC")), NEVER
        return read.duration or NEVER, read.count or NEVER

    def _coded(self, windows: pa.Table) -> Records:
        made = np.zeros(len(windows), KNOWN)
        made["k"] = windows["k"].fill_null(int(ALL)).to_numpy()
        made["error"] = windows["error"].fill_null(0.0).to_numpy()
        made["since"] = windows["since"].fill_null(BEGINNING).to_numpy()
        made["live"] = True
        for name, codes in self.codes.items():
            coded = windows[name].combine_chunks().dictionary_encode()
            code = [codes.setdefault(text, len(codes)) for text in coded.dictionary.to_pylist()]
            made[name] = np.array([*code, 0], np.int32)[coded.indices.fill_null(len(code)).to_numpy()]
        return made

    def _heard(self, step: WindowStep) -> pa.Table:
        """What is told of a step, after the gates of those who have a pace."""
        if step.paced is not None:
            self.gates.take(step.paced)
        told = self._table(*self._publish(step))
        if not self.gates:
            return told
        heard = self.gates.hear(told, step.clock)
        self.gates.settle(self._held())
        return heard

    def _held(self) -> dict[str, set[str]]:
        """The events that the lists of members with a pace hold, of those that keep any."""
        held = {}
        for id in self.gates.paces:
            member = self.member.get(id, UNKNOWN)
            if member >= 0 and self.known["k"][member] != ALL:
                saved = self.windows.save(np.array([member], np.int32))
                held[id] = set(saved.ids.to_pylist())
        return held

    def _publish(self, step: WindowStep) -> list[Entries]:
        """Who is told, as events are published and as time goes on."""
        if self.pending is None:
            return [self._told(step.published), self.windows.advance(step.clock)]
        late, fresh = split(step.published, step.clock)
        due, self.pending = split(joined(self.pending, fresh).in_order(), step.clock)
        return [self._told(due), self.windows.advance(step.clock), self._told(late)]

    def _told(self, due: Publications) -> Entries:
        if self.gates:
            self.gates.publishes(due, self.ids)
        return self.windows.publish_batch(due.ids, due.time, due.expires, due.starts, due.members, due.relevances, due.groups)

    def _table(self, *told: Entries) -> pa.Table:
        return pa.concat_tables([self._rows(entries) for entries in told])

    def _rows(self, entries: Entries) -> pa.Table:
        if self._names is None:
            self._names = pa.array(self.ids, pa.string())
        names = self._names.take(pa.array(entries.slot))
        rank = pa.array(entries.rank, mask=entries.rank == 0)
        why = pa.array(WHY).take(pa.array(entries.promoted.astype(np.int8)))
        return notification_table(names, entries.event, entries.relevance, rank, why, entries.at)

    def chunk(self, first: int, end: int) -> bytes:
        """The members first ... end - 1 as they stand, for `restore`."""
        members = (first + np.flatnonzero(self.known["live"][first:end])).astype(np.int32)
        saved = self.windows.save(members)
        known = self.known[members]
        texts = {name: pa.array(list(codes), pa.string()) for name, codes in self.codes.items()}
        newcomers = {
            "member": members,
            "id": pa.array([self.ids[member] for member in members.tolist()], pa.string()),
            "k": pa.array(known["k"], pa.int32(), mask=known["k"] == ALL),
            "window": texts["window"].take(pa.array(known["window"])),
            "error": pa.array(known["error"], mask=known["error"] == 0.0),
            "since": known["since"],
            **{name: texts[name].take(pa.array(known[name])) for name in TEXTS if name != "window"},
        }
        records = {"lists": saved.lists, "places": saved.places, "events": saved.events}
        fields = {name: {field: array[field] for field in array.dtype.names or ()} for name, array in records.items()}
        groups = {"groups": {"group": saved.groups}} if len(saved.groups) else {}
        return bundle({"newcomers": newcomers, "ids": {"id": saved.ids}, **fields, **groups})

    def head(self) -> bytes:
        """What is not a member's, for `restore`."""
        meters = {"clock": pa.array([self.windows.clock], pa.int64()), "publications": [self.windows.publications]}
        gates = {name: pa.array(column, pa.string()) for name, column in self.gates.table().items()}
        tables = {"meters": {**meters, "manifest": [self.manifest]}, **tables_of(self.pending or NOTHING)}
        return bundle({**tables, "gates": gates} if self.gates else tables)

    @classmethod
    def restore(cls, head: bytes, chunks: Iterable[bytes], waits: bool = False) -> ShardWindows:
        made = cls(waits)
        found = unbundle(head)
        meters = {name: column[0].as_py() for name, column in found["meters"].items()}
        made.windows.set_clock(meters["clock"], meters["publications"])
        made.manifest = meters["manifest"]
        if waits:
            made.pending = publications(found)
        loaded = [made._loaded(unbundle(body)) for body in chunks]
        if loaded:
            members, saved = zip(*loaded, strict=True)
            made.windows.load(members, saved)
        if "gates" in found:
            made.gates = ShardGates.restore(found["gates"])
        return made

    def _loaded(self, found: Mapping[str, Mapping[str, pa.Array]]) -> tuple[NDArray[np.int32], Saved]:
        newcomers = all_columns(pa.table(dict(found["newcomers"])))
        self._join(newcomers)
        records = [_records(kind, found[name]) for name, kind in (("lists", SAVED_LIST), ("places", CANDIDATE), ("events", EVENT))]
        lists, places, events = records
        groups = numbers(found["groups"]["group"]) if "groups" in found else NO_GROUPS
        return newcomers["member"].to_numpy(), Saved(lists, places, found["ids"]["id"], events, groups)


def windows_of(view: View, place: Place) -> pa.Table:
    """The columns of WINDOW; the k of a digest is not its list's, which lets everything through."""
    ranking = view.ranking(place, (*WINDOW, "digest"))
    k = pc.if_else(ranking["digest"].is_valid(), pa.scalar(None, pa.int32()), ranking["k"])
    return ranking.set_column(ranking.column_names.index("k"), "k", k).select(list(WINDOW))


def without(ranking: pa.Table, names: Sequence[str]) -> NDArray[np.bool_]:
    """The rows that have none of these."""
    none = np.ones(len(ranking), np.bool_)
    for name in names:
        none &= ranking[name].is_null().to_numpy()
    return none


def all_columns(newcomers: pa.Table) -> pa.Table:
    """Those that an earlier format wrote lack the columns that came since."""
    missing = [name for name in NEWCOMERS.names if name not in newcomers.column_names]
    for name in missing:
        newcomers = newcomers.append_column(name, pa.nulls(len(newcomers), NEWCOMERS.field(name).type))
    return newcomers.select(NEWCOMERS.names).cast(NEWCOMERS)


def _published(matches: Matches, member: NDArray[np.int64]) -> Publications:
    """The events by (time, id), also those that concern nobody, and the rows of members among them."""
    keys = [("time", "ascending"), ("id", "ascending")]
    order = pc.sort_indices(pa.table({"time": matches.time, "id": matches.ids}), sort_keys=keys).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    concerned = np.flatnonzero(member >= 0)
    event = rank[matches.event[concerned]]
    kept = concerned[np.argsort(event, kind="stable")]
    begin = starts(np.bincount(event, minlength=len(order)))
    ids, time, expires = matches.ids.take(pa.array(order)), matches.time[order], matches.expires[order]
    return Publications(ids, time, expires, begin, member[kept].astype(np.int32), matches.relevance[kept], matches.group[kept])


def _records(kind: np.dtype[Any], columns: Mapping[str, pa.Array]) -> Records:
    made = np.zeros(len(next(iter(columns.values()))), kind)
    for name, column in columns.items():
        made[name] = numbers(column)
    return made


def hearing(view: View, notes: pa.Table) -> pa.Table:
    """Without what would reach a subscription from its end on: time brings promotions to whom no event reaches any more."""
    if not len(notes) or all(segment.segment.expires is None for segment in view.segments):
        return notes
    ends = view.ranking(view.locate(notes["subscription"].combine_chunks()), ("expires",))["expires"]
    return notes.filter(pc.or_kleene(pc.is_null(ends), pc.less(notes["at"], ends)))


def of_plain(matches: Matches, rows: NDArray[np.int64]) -> pa.Table:
    """Whoever has no ranking hears of every match."""
    event, subscription = (pa.array(place[rows]) for place in (matches.event, matches.subscription))
    why = pa.array(["matched"] * len(rows), pa.string())
    named = matches.subscriptions.take(subscription), matches.ids.take(event)
    return notification_table(*named, matches.score[rows], pa.nulls(len(rows), pa.int32()), why, matches.time[matches.event[rows]])
