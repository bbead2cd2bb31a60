"""Windows by slot: the owner keeps the names, acts on many at once, and may write lists away in pieces.

Publications come as columns, in order; what comes back are columns of notifications (`Entries`), in order of time. Nothing
here makes a Python object for a subscription, a match or a candidate. `Windows` gives names to the slots; a shard of Spark
state has its own.

`save` gives the lists of some slots as arrays that `load` takes back, in this process or another (a format that is kept for
ever):

| array           | dtype      | meaning                                                                                 |
|-----------------|------------|-----------------------------------------------------------------------------------------|
| `lists`         | SAVED_LIST | `viewed` of a slot's `size` candidates are in its view; `start` and `room` say nothing     |
| `places`        | CANDIDATE  | candidates, slot after slot, the view best first, then the spare; `event` is one of `events` |
| `groups`        | int64      | the group of each, empty if no list asks for it                                         |
| `ids`, `events` | EVENT      | the events that any of them refers to; id_start and id_end say nothing                    |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tidings._jit import kernel
from tidings.index.packed.simd import LANES
from tidings.model.values.calendar import Calendar
from tidings.rank.queue_length import WORST_BIRTHS, queue_length
from tidings.windows.calendars import NO_TIMES, Calendars
from tidings.windows.entries import Entries, StoredIds, of_notices
from tidings.windows.lists import put_back
from tidings.windows.memory import (
    BEGINNING,
    CLOCK,
    DONE,
    JOINING,
    LIST,
    NEVER,
    NONE,
    NOTICE,
    NTH,
    NUMBER,
    OUT_FULL,
    PRUNES,
    REFILLS,
    SPARE_USED,
    STORED,
    TOUCHED,
    VIEW_USED,
    VIEWS_FULL,
    WRITTEN,
    Floats,
    Handles,
    Ints,
    ListRow,
    Memory,
    Records,
    empty_memory,
    with_events,
    with_rows,
    with_spare,
    with_views,
)
from tidings.windows.near.points import Points
from tidings.windows.publishing import NO_GROUPS, Concerned, advance_to, concerned_of, publish_events

SAVED_FIELDS = "k duration counted since after limit bounded start room viewed size changed"
SAVED_LIST = np.dtype([(name, "i8") for name in SAVED_FIELDS.split()])
CANDIDATE = np.dtype([("relevance", "f8"), ("event", "i4"), ("told", "i4")])


class Terms(NamedTuple):
    """How each of some subscriptions ranks: k (ALL: everything), window (NEVER for a side it lacks), since, error (0: exact), and
    whether one a group counts (`per`). A window of the calendar has the duration that `SlotWindows.calendar` gives it."""

    k: Ints
    duration: Ints
    counted: Ints
    since: Ints
    error: Floats
    per: NDArray[np.bool_]


class Saved(NamedTuple):
    lists: Records
    places: Records
    ids: pa.StringArray
    events: Records
    groups: Ints = NO_GROUPS


class SlotWindows:
    def __init__(self, names: list[str] | None = None) -> None:
        """`names` of the slots are for those who loop over entries."""
        self.memory = empty_memory()
        self.names = [] if names is None else names
        self._calendars = Calendars()

    @property
    def near(self) -> Points | None:
        """Where lists of ideal points find candidates; None for lists of matches."""
        return None

    @property
    def clock(self) -> int | None:
        """The latest time seen; None before the first act."""
        clock = int(self.memory.meter[CLOCK])
        return None if clock == BEGINNING else clock

    @property
    def publications(self) -> int:
        return int(self.memory.meter[NUMBER])

    @property
    def next_instant(self) -> int:
        """Nobody leaves a list before it; NEVER if nobody will."""
        return int(self.memory.instant_due.min())

    def set_clock(self, clock: int | None, publications: int) -> None:
        """Begin in the middle of a stream: so much was published before, up to this time."""
        self.memory.meter[CLOCK] = BEGINNING if clock is None else clock
        self.memory.meter[NUMBER] = publications

    def calendar(self, calendar: Calendar) -> int:
        """What stands for the duration of a window of this calendar."""
        duration = self._calendars.duration(calendar)
        self.memory = self._calendars.covering(self.memory, NO_TIMES)
        return duration

    def begin(self, slots: Handles, terms: Terms) -> None:
        """Begin lists in free slots."""
        made = np.zeros(len(slots), LIST)
        for name in ("k", "duration", "counted", "since"):
            made[name] = getattr(terms, name)
        made["after"], made["changed"], made["edge"] = self.memory.meter[NUMBER], 1, NONE
        made["bounded"] = (terms.error > 0) & (terms.k > 0)
        made["per"] = terms.per
        made["limit"] = self._limits(terms)
        rows = self._rows_for(slots)
        self.memory.lists[rows] = made

    def end(self, slots: Handles) -> None:
        rows = self._rows(slots)
        self.memory.lists[rows] = np.zeros((), LIST)
        self.memory.instant_due[rows] = self.memory.number_due[rows] = NEVER

    def publish_batch(
        self,
        events: Sequence[str] | pa.Array,
        times: ArrayLike,
        expires: ArrayLike,
        starts: ArrayLike,
        slots: ArrayLike,
        relevances: ArrayLike,
        groups: ArrayLike = NO_GROUPS,
    ) -> Entries:
        """Publish in this order; event i concerns slots[starts[i]:starts[i + 1]]. `expires` is NEVER for an event without. `groups`
        has the group of each of these, 0 for none, or is empty if no list asks for one.

        Must be told of every publication of the topic, also of one that concerns nobody: count windows count it.
        """
        concerned = concerned_of(starts, slots, relevances, groups)
        assert len(concerned.start) == len(events) + 1
        return self._publish(self._store(events, times, expires), concerned)

    def pass_by(self, times: Ints) -> None:
        """As `publish_batch`, of events that concern nobody while there is no list: they are counted, and the clock goes on."""
        meter = self.memory.meter
        meter[NUMBER] += len(times)
        meter[CLOCK] = max(int(meter[CLOCK]), int(times.max()))

    def advance(self, time: int) -> Entries:
        """The promotions up to and including `time`, each at its exact instant."""
        return self._entries(self._run(lambda: advance_to(self.memory, self.near, time)))

    def save(self, slots: Handles) -> Saved:
        rows = self._rows(slots)
        own = self.memory.lists[rows]
        lists = np.zeros(len(rows), SAVED_LIST)
        for name in SAVED_FIELDS.split():
            if name != "size":
                lists[name] = own[name]
        lists["size"] = own["viewed"] + own["spare"]
        cost, mark, group = self._candidates_of(rows)
        places = np.zeros(len(mark), CANDIDATE)
        used, places["event"] = np.unique(mark >> 1, return_inverse=True)
        places["relevance"], places["told"] = -cost, mark & 1
        ids, groups = self._ids(used.astype(np.int32)).array(), group if own["per"].any() else NO_GROUPS
        return Saved(lists, places, ids, self.memory.events[used], groups)

    def load(self, slots: Sequence[Handles], saved: Sequence[Saved]) -> None:
        """Take lists into slots that have been begun, before anything is published. The clock stands where it stood."""
        numbers = np.concatenate([part.events["number"] for part in saved])
        number, once, handle = np.unique(numbers, return_index=True, return_inverse=True)
        events = np.concatenate([part.events for part in saved])[once]
        ids = pa.concat_arrays([part.ids for part in saved]).take(pa.array(once))
        self._store_numbered(ids, events["time"], events["expires"], number)
        lists, places = np.concatenate([part.lists for part in saved]), np.concatenate([part.places for part in saved])
        shift = np.repeat(np.cumsum([0, *(len(part.events) for part in saved[:-1])]), [len(part.places) for part in saved])
        rows = self._rows(np.concatenate(slots))
        for name in ("after", "limit", "changed"):
            self.memory.lists[name][rows] = lists[name]
        groups = np.concatenate([part.groups if len(part.groups) else np.zeros(len(part.places), np.int64) for part in saved])
        marks = 2 * handle[places["event"] + shift] + places["told"]
        self._put_back(rows, lists["size"], -places["relevance"], marks, groups)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.memory)

    @property
    def stats(self) -> dict[str, int]:
        meter, lists = self.memory.meter, self.memory.lists
        return {
            "candidates": int(lists["viewed"].sum()),
            "spare": int(lists["spare"].sum()),
            "publications": int(meter[NUMBER]),
            "touched": int(meter[TOUCHED]),
            "refills": int(meter[REFILLS]),
            "prunes": int(meter[PRUNES]),
        }

    def _rows(self, slots: NDArray[Any]) -> NDArray[Any]:
        """Where in `lists` the slots' lists lie."""
        return slots

    def _rows_for(self, slots: Handles) -> NDArray[Any]:
        """The rows of free slots, which may be new ones."""
        if len(slots) and slots.max() >= len(self.memory.lists):
            there = np.arange(len(self.memory.lists))
            self.memory = with_rows(self.memory, 2 * int(slots.max()) + 2, there, there)
        return slots

    def _limits(self, terms: Terms) -> Ints:
        """The longest views: of exact lists `_longest_view`, else the paper's queue."""
        limit = self._longest_view(np.maximum(terms.k, 0))
        bounded = np.flatnonzero((terms.error > 0) & (terms.k > 0))
        if not len(bounded):
            return limit
        births = np.where(terms.counted == NEVER, WORST_BIRTHS, terms.counted)
        kinds, place = np.unique(np.stack([terms.k, births, terms.error])[:, bounded], axis=1, return_inverse=True)
        lengths = [queue_length(int(k), float(error), int(count)) for k, count, error in kinds.T]
        limit[bounded] = np.array(lengths, np.int64)[place]
        return limit

    def _longest_view(self, k: Ints) -> Ints:
        return 2 * k + 8

    def _publish(self, first: int, concerned: Concerned) -> Entries:
        self.memory.meter[NTH] = self.memory.meter[JOINING] = 0
        return self._entries(self._run(lambda: publish_events(self.memory, self.near, first, concerned)))

    def _entries(self, out: Records) -> Entries:
        return of_notices(out, self.memory.events[: self.memory.meter[STORED]], self.memory.id_bytes, self.names)

    def _ids(self, events: Handles) -> StoredIds:
        return StoredIds(events, self.memory.events[: self.memory.meter[STORED]], self.memory.id_bytes)

    def _run(self, step: Callable[[], int]) -> Records:
        """Repeat a pass until it is done, with more room for what it ran out of; what it told, until the next pass."""
        parts = []
        while (stop := step()) != DONE:
            parts.append(self._told().copy())
            self._make_room(stop)
        return np.concatenate([*parts, self._told()]) if parts else self._told()

    def _told(self) -> Records:
        written = self.memory.meter[WRITTEN]
        self.memory.meter[WRITTEN] = 0
        notices: Records = self.memory.out[:written]
        return notices

    def _make_room(self, stop: int) -> None:
        """Twice what is in use, and twice what the widest list has."""
        lists = self.memory.lists
        if stop == OUT_FULL:
            most = lists["limit"] if self.near is not None else lists["viewed"] + lists["spare"] + 1
            longest = int(np.minimum(lists["k"], most).max()) + 2
            self.memory = self.memory._replace(out=np.zeros(max(2 * len(self.memory.out), longest), NOTICE))
            return
        rooms = lists["room" if stop == VIEWS_FULL else "spare_room"]
        wider = with_views if stop == VIEWS_FULL else with_spare
        self.memory = wider(self.memory, 2 * int(rooms.sum()) + max(16, 2 * int(rooms.max())))

    def _candidates_of(self, rows: NDArray[Any]) -> tuple[Floats, Handles, Ints]:
        """Costs, marks and groups (0 where the list does not ask) of these lists, one after the other, the view before the
        spare."""
        size = int((self.memory.lists["viewed"] + self.memory.lists["spare"])[rows].sum())
        cost, mark, group = np.zeros(size), np.zeros(size, np.int32), np.zeros(size, np.int64)
        write_candidates(self.memory, np.asarray(rows, np.int64), cost, mark, group)
        return cost, mark, group

    def _put_back(self, rows: NDArray[Any], sizes: Ints, cost: Floats, mark: NDArray[Any], group: Ints) -> None:
        """Give empty lists their candidates: as spare, of which the best then go to the view."""
        memory, sizes = self.memory, np.asarray(sizes, np.int64)
        wanted = np.where(memory.lists["k"][rows] > 0, np.minimum(memory.lists["limit"][rows], sizes) + 1, 0)
        self._take_views(rows, np.maximum(wanted - memory.lists["room"][rows], 0))
        memory = self.memory
        used, total = int(memory.meter[SPARE_USED]), int(sizes.sum())
        if used + total > len(memory.spare_mark):
            memory = self.memory = with_spare(memory, 2 * (used + total))
            used = int(memory.meter[SPARE_USED])
        memory.spare_cost[used : used + total], memory.spare_mark[used : used + total] = cost, mark
        memory.spare_group[used : used + total] = group
        memory.meter[SPARE_USED] += total
        starts = used + np.cumsum(sizes) - sizes
        for name, value in (("spare_start", starts), ("spare_room", sizes), ("spare", sizes)):
            memory.lists[name][rows] = value
        put_back(memory, self.near, np.asarray(rows, np.int64))

    def _take_views(self, rows: NDArray[Any], rooms: Ints) -> None:
        """Give rows with empty views so much room each, where it is not 0."""
        rows, rooms = rows[rooms > 0], rooms[rooms > 0]
        total = int(rooms.sum())
        if self.memory.meter[VIEW_USED] + total > len(self.memory.mark) - LANES:
            self.memory.lists["room"][rows] = 0
            self.memory = with_views(self.memory, 2 * (int(self.memory.lists["room"].sum()) + total))
        used = int(self.memory.meter[VIEW_USED])
        self.memory.lists["start"][rows], self.memory.lists["room"][rows] = used + np.cumsum(rooms) - rooms, rooms
        self.memory.meter[VIEW_USED] += total

    def _store(self, ids: Sequence[str] | pa.Array, times: ArrayLike, expires: ArrayLike) -> int:
        """Add events, numbered as the next publications; the handle of the first. Those no longer needed are forgotten."""
        if isinstance(ids, list) and len(ids) == 1:
            return self._store_one(ids[0], int(np.ravel(times)[0]), int(np.ravel(expires)[0]))
        if self._calendars:
            self.memory = self._calendars.covering(self.memory, np.asarray(times, np.int64))
        strings = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string())
        n, (_, offset_buffer, texts) = len(strings), strings.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32)[strings.offset : strings.offset + n + 1] if n else np.zeros(1, np.int32)
        length = int(offsets[-1] - offsets[0])
        first, begin = self._room_for_events(n, length)
        if length:
            self.memory.id_bytes[begin : begin + length] = np.frombuffer(texts, np.uint8)[offsets[0] : offsets[-1]]
        added = self.memory.events[first : first + n]
        added["time"], added["expires"] = times, expires
        added["number"] = self.memory.meter[NUMBER] + 1 + np.arange(n)
        ends = begin + (offsets - offsets[0])
        added["id_start"], added["id_end"] = ends[:-1], ends[1:]
        self.memory.meter[STORED] += n
        return first

    def _store_one(self, event: str, time: int, expires: int) -> int:
        """As `_store`, for one, without Arrow."""
        if self._calendars:
            self.memory = self._calendars.covering(self.memory, np.array([time]))
        name = np.frombuffer(event.encode(), np.uint8)
        first, begin = self._room_for_events(1, len(name))
        self.memory.id_bytes[begin : begin + len(name)] = name
        self.memory.events[first] = time, expires, self.publications + 1, begin, begin + len(name)
        self.memory.meter[STORED] += 1
        return first

    def _store_numbered(self, ids: Any, times: ArrayLike, expires: ArrayLike, numbers: ArrayLike) -> None:
        """Take back events, ascending by number, before all others."""
        first = self._store(ids, times, expires)
        assert first == 0, "handles ascend by publication number"
        self.memory.events["number"][: len(ids)] = numbers

    def _room_for_events(self, wanted: int, wanted_bytes: int) -> tuple[int, int]:
        """The first free handle and the first free byte of ids, with as many places after them."""
        stored = int(self.memory.meter[STORED])
        begin = int(self.memory.events["id_end"][stored - 1]) if stored else 0
        if stored + wanted > len(self.memory.events) or begin + wanted_bytes > len(self.memory.id_bytes):
            self._forget_events(wanted, wanted_bytes)
            stored = int(self.memory.meter[STORED])
            begin = int(self.memory.events["id_end"][stored - 1]) if stored else 0
        return stored, begin

    def _forget_events(self, wanted: int, wanted_bytes: int) -> None:
        """Keep only events that some list refers to, with room for those wanted."""
        used = np.zeros(int(self.memory.meter[STORED]), np.bool_)
        self.memory = with_events(self.memory, used, wanted, wanted_bytes)


@kernel
def write_candidates(m: Memory, rows: Ints, cost: Floats, mark: Handles, group: Ints) -> None:
    n = 0
    for row in rows:
        own: ListRow = m.lists[row]
        for at in range(own.start, own.start + own.viewed):
            cost[n], mark[n] = m.cost[at], m.mark[at]
            if own.per:
                group[n] = m.group[at]
            n += 1
        for at in range(own.spare_start, own.spare_start + own.spare):
            cost[n], mark[n] = m.spare_cost[at], m.spare_mark[at]
            if own.per:
                group[n] = m.spare_group[at]
            n += 1
