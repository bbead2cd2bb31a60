"""`Windows` against the definition: a state machine for exact lists and bounded queues, and streams that make it prune and grow."""

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tests.oracle.windows import WindowsOracle
from tidings.errors import SubscriptionError
from tidings.model.values.window import Window
from tidings.rank.queue_length import WORST_BIRTHS, queue_length
from tidings.windows.memory import NEVER
from tidings.windows.near.windows import NearWindows
from tidings.windows.windows import Windows

WINDOWS = st.one_of(
    st.none(),
    st.builds(lambda n: Window(duration=n), st.integers(1, 12)),
    st.builds(lambda n: Window(count=n), st.integers(1, 8)),
)
RELEVANCES = st.integers(-8, 8).map(lambda eighths: eighths / 8)
EVENT = st.tuples(
    st.sampled_from(["a", "b", "ab", "ä", "", "z\U0001f600", "z\uffff"]),
    st.integers(-6, 5),
    st.one_of(st.none(), st.integers(-2, 12)),
    st.lists(RELEVANCES, min_size=6, max_size=6),
    st.integers(0, 63),
    st.integers(0, 3),
)
CALENDARS = st.builds(
    lambda unit, tz: (Window(calendar=unit), tz),
    st.sampled_from(["day", "day", "week", "month"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
)
HOUR = 3_600_000_000
DST = round(datetime(2026, 3, 28, 22, tzinfo=UTC).timestamp()) * 1_000_000
"""The last day of winter time in Berlin."""
POINTS = st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.integers(0, 8).map(lambda n: n / 8))
PLACED = st.tuples(
    st.sampled_from(["a", "b", "ab", "ä", ""]),
    st.integers(-4, 4),
    st.one_of(st.none(), st.integers(-2, 12)),
    st.one_of(POINTS, POINTS, POINTS, POINTS, st.sampled_from([(math.nan, 0.5), (1e200, 0.5), (-1e308, 1e308), (1e150, 0.0)])),
)
"""A point with a NaN concerns nobody, nor does one whose distance is beyond all numbers."""


def oracle_queue_length(k, error, count):
    return queue_length(k, error, count or WORST_BIRTHS)


def restored(kind, state):
    windows, problems = kind.restore(json.loads(json.dumps(state)))
    assert problems == []
    return windows


class WindowsMachine(RuleBasedStateMachine):
    active = Bundle("active")

    def __init__(self):
        super().__init__()
        self.windows = Windows()
        self.oracle = WindowsOracle(oracle_queue_length)
        self.born = 0
        self.saved = {}

    @initialize(unit=st.sampled_from([1, HOUR, 7 * HOUR]), start=st.sampled_from([0, DST, DST - 20 * HOUR]))
    def begin(self, unit, start):
        """Steps of time so long that calendars' periods end, also where a day has 23 hours."""
        self.unit, self.now = unit, start

    @rule(
        target=active,
        k=st.one_of(st.none(), st.integers(0, 4), st.just(20)),
        window=st.one_of(WINDOWS.map(lambda window: (window, None)), CALENDARS),
        error=st.sampled_from([None, None, 0.4, 0.9]),
        back=st.integers(-2, 3),
        per=st.booleans(),
        narrow=st.booleans(),
    )
    def activate(self, k, window, error, back, per, narrow):
        self.born += 1
        name, (window, tz), since = f"s{self.born}", window, self.now - back * self.unit
        if window is not None and window.duration is not None:
            window = Window(duration=window.duration * self.unit)
        duration, count = (None, None) if window is None else (window.duration, window.count)
        calendar = None if window is None or window.calendar is None else (window.calendar, tz)
        error = None if per else error
        self.windows.activate(name, k, window, since, error, "sku" if per else None, tz)
        self.oracle.activate(name, k, duration, count, since, error, calendar=calendar, per=per)
        if k and error is None and narrow:
            # As short as it may be, so that small histories fall off the edge.
            self.windows.memory.lists["limit"][self.windows.slot(name)] = k + 1
        return name

    @rule(subscription=consumes(active))
    def deactivate(self, subscription):
        self.windows.deactivate(subscription)
        self.oracle.deactivate(subscription)

    def concerned(self, relevances, mask):
        chosen = [s for i, s in enumerate(self.oracle.interests) if mask >> (i % 6) & 1]
        return [(s, relevances[i % 6]) for i, s in enumerate(chosen)]

    def stamp(self, event):
        name, step, lives, relevances, mask, group = event
        time = self.now + step * self.unit
        self.now = max(self.now, time)
        return name, time, None if lives is None else time + lives * self.unit, self.concerned(relevances, mask), group

    @rule(event=EVENT)
    def publish(self, event):
        event = self.stamp(event)
        assert sorted(self.windows.publish(*event)) == sorted(self.oracle.publish(*event[:4], event[4] or None))

    @rule(events=st.lists(EVENT, max_size=8))
    def publish_batch(self, events):
        events = [self.stamp(event) for event in events]
        starts = np.cumsum([0, *(len(event[3]) for event in events)])
        columns = self.windows.publish_batch(
            [event[0] for event in events],
            [event[1] for event in events],
            [NEVER if event[2] is None else event[2] for event in events],
            starts,
            [self.windows.slot(s) for event in events for s, _ in event[3]],
            [relevance for event in events for _, relevance in event[3]],
            [event[4] for event in events for _ in event[3]],
        )
        notices = [notice for event in events for notice in self.oracle.publish(*event[:4], event[4] or None)]
        assert sorted(columns) == sorted(notices)
        assert (np.diff(columns.at) >= 0).all()

    @rule(step=st.integers(-1, 14))
    def advance(self, step):
        self.now = max(self.now, self.now + step * self.unit)
        assert sorted(self.windows.advance(self.now)) == sorted(self.oracle.advance(self.now))

    @rule(subscription=active, step=st.integers(-1, 10))
    def top(self, subscription, step):
        step *= self.unit
        if self.oracle.interests[subscription].k is None:
            with pytest.raises(SubscriptionError, match="has no k"):
                self.windows.top(subscription, self.now)
        else:
            assert self.windows.top(subscription, self.now + step) == self.oracle.top(subscription, self.now + step)

    @rule()
    def restart(self):
        state = self.windows.state()
        self.saved = state["subscriptions"]
        self.windows = restored(Windows, state)

    @rule()
    def restart_from_what_changed(self):
        """A record that is written only where `changed` says so is the whole state."""
        self.saved |= {subscription: self.windows.state_of(subscription) for subscription in self.windows.changed()}
        self.saved = {subscription: self.saved[subscription] for subscription in self.oracle.interests}
        state = {"clock": self.windows.clock, "publications": self.windows.publications, "subscriptions": self.saved}
        self.windows = restored(Windows, state)

    @rule(cut=st.integers(0, 6))
    def restart_from_pieces(self, cut):
        """As a shard of Spark state does: some slots in one piece, some in another."""
        old, self.windows = self.windows, Windows()
        self.windows.set_clock(old.clock, old.publications)
        self.windows.names, self.windows._free = old.names, old._free
        self.windows._slots, self.windows._activations = old._slots, old._activations
        self.windows._per, self.windows.grouped = old._per, old.grouped
        slots = np.array(sorted(old._slots.values()), np.int32)
        for name, slot in old._slots.items():
            self.windows.begin(np.array([slot], np.int32), self.windows.terms([old._activations[name]]))
        pieces = [slots[:cut], slots[cut:]]
        self.windows.load(pieces, [old.save(piece) for piece in pieces])

    @invariant()
    def invariants_hold(self):
        self.windows.check()


WindowsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWindows = WindowsMachine.TestCase


@pytest.mark.soak
class TestWindowsSoak(WindowsMachine.TestCase):
    settings = settings(max_examples=3000, stateful_step_count=80, deadline=None)


@pytest.mark.parametrize(("error", "groups"), [(None, 0), (0.2, 0), (None, 5), (None, 60)])
@pytest.mark.parametrize("kind", ["time", "count", "none"])
def test_a_long_stream(kind, error, groups):
    """Pruning, refilling, growing and forgetting events, at sizes that the state machine does not reach."""
    random = np.random.default_rng(7)
    windows, oracle = Windows(), WindowsOracle(oracle_queue_length)
    for s in range(12):
        k, span = int(random.integers(1, 7)), int(random.integers(5, 90))
        duration, count = (span if kind == "time" else None), (span if kind == "count" else None)
        windows.activate(
            f"s{s}", k, None if kind == "none" else Window(duration=duration, count=count), 0, error, "sku" if groups else None
        )
        oracle.activate(f"s{s}", k, duration, count, 0, error, per=groups > 0)
    time = 0
    for e in range(250):
        time += int(random.integers(0, 3))
        late = int(random.integers(0, 20)) if random.random() < 0.1 else 0
        expires = time + int(random.integers(-3, 60)) if random.random() < 0.1 else None
        concerned = [(f"s{s}", int(random.integers(0, 1000)) / 8) for s in range(12) if random.random() < 0.8]
        event = (f"e{e}", time - late, expires, concerned, 1 + int(random.integers(0, groups)) if groups else 0)
        assert sorted(windows.publish(*event)) == sorted(oracle.publish(*event[:4], event[4] or None))
    windows.check()
    assert error is not None or windows.stats["prunes"] > 0
    assert sorted(windows.advance(time + 200)) == sorted(oracle.advance(time + 200))
    assert kind != "time" or windows.stats["candidates"] < 12 * 90


def test_two_leave_at_one_instant():
    windows = Windows()
    windows.activate("s", 2, Window(duration=10), 0)
    windows.publish("c", 1, 9, [("s", 3.0)])
    windows.publish("b", 2, 9, [("s", 2.0)])
    assert list(windows.publish("x", 3, None, [("s", 1.0)])) == []
    assert list(windows.publish("y", 4, None, [("s", 1.0)])) == []
    assert list(windows.publish("z", 4, None, [("s", 0.5)])) == []
    assert sorted(windows.advance(9)) == [("s", "x", 1.0, 1, "promoted", 9), ("s", "y", 1.0, 2, "promoted", 9)]
    assert list(windows.advance(14)) == [("s", "z", 0.5, 2, "promoted", 13)]


def test_the_edges_of_the_window():
    windows = Windows()
    windows.activate("s", 1, Window(duration=10), 5)
    assert list(windows.publish("at activation", 5, None, [("s", 9.0)])) == []
    assert [e.event for e in windows.publish("just after", 6, None, [("s", 1.0)])] == ["just after"]
    assert list(windows.publish("worse", 15, None, [("s", 0.5)])) == []
    assert list(windows.publish("nobody's", 16, None, [])) == [("s", "worse", 0.5, 1, "promoted", 16)]
    assert windows.top("s", 24) == [("worse", 0.5)]
    assert windows.top("s", 25) == []


def test_a_late_event_is_told_at_the_clock_if_its_own_time_is_in_the_window():
    windows = Windows()
    windows.activate("s", 1, Window(duration=10), 0)
    windows.publish("a", 20, None, [("s", 1.0)])
    assert list(windows.publish("too late", 10, None, [("s", 2.0)])) == []
    assert list(windows.publish("late", 11, None, [("s", 2.0)])) == [("s", "late", 2.0, 1, "entered", 20)]
    assert list(windows.publish("equal and late", 19, None, [("s", 1.0)])) == []
    assert list(windows.advance(21)) == [("s", "equal and late", 1.0, 1, "promoted", 21)]


def test_ties_go_by_time_then_by_id_as_text():
    windows = Windows()
    windows.activate("s", 1, None, 0)
    assert [e.event for e in windows.publish("b", 1, None, [("s", 1.0)])] == ["b"]
    assert list(windows.publish("ba", 1, None, [("s", 1.0)])) == []
    assert list(windows.publish("\u00e9", 1, None, [("s", 1.0)])) == []
    assert [e.event for e in windows.publish("a\U0001f600", 1, None, [("s", 1.0)])] == ["a\U0001f600"]
    assert [e.event for e in windows.publish("a\uffff", 1, None, [("s", 1.0)])] == ["a\uffff"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("s", -1, None, 0), "k is -1"),
        (("s", 1, None, 0, 1.5), "error is 1.5"),
        (("again", 1, None, 0), "active already"),
    ],
)
def test_refusals(arguments, sentence):
    windows = Windows()
    windows.activate("again", 1, None, 0)
    with pytest.raises(SubscriptionError, match=sentence):
        windows.activate(*arguments)
    with pytest.raises(SubscriptionError, match="has no window here"):
        windows.publish("e", 0, None, [("unknown", 1.0)])
    with pytest.raises(SubscriptionError, match="relevance is NaN"):
        windows.publish("e", 0, None, [("again", float("nan"))])


class NearWindowsMachine(RuleBasedStateMachine):
    """`NearWindows` hears points; the oracle hears of every event, for every subscription, how far away it is."""

    active = Bundle("active")

    def __init__(self):
        super().__init__()
        self.windows = NearWindows(2)
        self.oracle = WindowsOracle(oracle_queue_length)
        self.centres = {}
        self.born = self.now = self.saved_up_to = 0
        self.saved, self.records = {}, []

    @rule(
        target=active,
        k=st.one_of(st.none(), st.integers(0, 4)),
        window=WINDOWS.filter(lambda window: window is not None),
        error=st.sampled_from([None, None, 0.4, 0.9]),
        back=st.integers(-2, 3),
        centre=POINTS | POINTS | st.sampled_from([(1e200, 0.5), (-1e308, 1e308)]),
        weights=st.sampled_from([None, (1.0, 4.0), (0.25, 0.25), (1e300, 1e-300)]),
    )
    def activate(self, k, window, error, back, centre, weights):
        self.born += 1
        name = f"s{self.born}"
        self.windows.activate(name, centre, k, window, self.now - back, error, weights)
        if k:
            self.narrow_view(name, error, k)
        self.oracle.activate(name, k, window.duration, window.count, self.now - back, error)
        self.centres[name] = (centre, weights or (1.0, 1.0))
        return name

    def narrow_view(self, name, error, k):
        """Views as short as they may be, so that small histories fall off the edge and refill."""
        if error is None:
            self.windows.memory.lists["limit"][self.windows._row(self.windows.slot(name))] = k + 1

    def relevance(self, subscription, point):
        centre, weights = self.centres[subscription]
        total = 0.0
        for x, c, w in zip(point, centre, weights, strict=True):
            total += w * ((x - c) * (x - c))
        return -math.sqrt(total)

    def stamp(self, event):
        name, step, lives, point = event
        time = self.now + step
        self.now = max(self.now, time)
        return name, time, None if lives is None else time + lives, point

    def expected(self, event):
        name, time, expires, point = event
        heard = [] if math.isnan(sum(point)) else [(s, self.relevance(s, point)) for s in self.oracle.interests]
        return self.oracle.publish(name, time, expires, [(s, relevance) for s, relevance in heard if relevance > -math.inf])

    @rule(event=PLACED)
    def publish(self, event):
        event = self.stamp(event)
        assert sorted(self.windows.publish(*event)) == sorted(self.expected(event))

    @rule(events=st.lists(PLACED, min_size=1, max_size=12), turned=st.booleans())
    def publish_batch(self, events, turned):
        self.windows.balls_per_event = 10**9 if turned else 0
        events = [self.stamp(event) for event in events]
        names, times, expires, points = zip(*events, strict=True)
        columns = self.windows.publish_batch(names, times, [NEVER if e is None else e for e in expires], points)
        notices = [notice for event in events for notice in self.expected(event)]
        assert sorted(columns) == sorted(notices)
        assert (np.diff(columns.at) >= 0).all()

    @rule(subscription=consumes(active))
    def deactivate(self, subscription):
        self.windows.deactivate(subscription)
        self.oracle.deactivate(subscription)

    @rule(step=st.integers(0, 14))
    def advance(self, step):
        self.now += step
        assert sorted(self.windows.advance(self.now)) == sorted(self.oracle.advance(self.now))

    @rule(subscription=active, step=st.integers(0, 10))
    def top(self, subscription, step):
        if self.oracle.interests[subscription].k is not None:
            assert self.windows.top(subscription, self.now + step) == self.oracle.top(subscription, self.now + step)

    @rule()
    def restart(self):
        self.save()
        self.windows = restored(NearWindows, self.windows.state())

    def save(self):
        """Only what changed since last time, and points only while some window holds them, as a durable topic writes them."""
        self.saved |= {subscription: self.windows.state_of(subscription) for subscription in self.windows.changed()}
        self.records.append((self.windows.publications, self.windows.live_events(self.saved_up_to)))
        self.saved_up_to = self.windows.publications
        oldest = self.windows.oldest_live()
        self.records = [record for record in self.records if record[0] >= oldest]

    @rule()
    def commit(self):
        self.save()

    @rule()
    def restart_from_what_changed(self):
        self.save()
        self.saved = {subscription: self.saved[subscription] for subscription in self.oracle.interests}
        events = [event for _, events in self.records for event in events]
        state = {"clock": self.windows.clock, "publications": self.windows.publications, "dimensions": 2}
        self.windows = restored(NearWindows, {**state, "subscriptions": self.saved, "events": events})

    @rule()
    def move(self):
        """As many new balls would make the index do."""
        self.windows.index._pack()
        self.windows._follow()

    @invariant()
    def invariants_hold(self):
        self.windows.check()


NearWindowsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestNearWindows = NearWindowsMachine.TestCase


@pytest.mark.soak
class TestNearWindowsSoak(NearWindowsMachine.TestCase):
    settings = settings(max_examples=3000, stateful_step_count=60, deadline=None)


def test_an_event_that_falls_off_the_view_at_once_still_draws_its_edge():
    windows = NearWindows(2)
    windows.activate("near", (0.0, 0.0), 1, Window(duration=9), 0)
    windows.memory.lists["limit"][windows._row(windows.slot("near"))] = 2
    windows.publish_batch(["a", "b", "c"], [1, 1, 1], [NEVER] * 3, [(0.0, 0.0)] * 3)
    windows.check()


def test_a_ball_that_grows_within_a_batch_holds_later_events_of_it():
    """Beyond everything that was near its block when the batch began."""
    random = np.random.default_rng(5)
    near, all_pairs = NearWindows(2), Windows()
    near.balls_per_event = 10**9
    near.activate("s", (0.5, 0.5), 2, Window(count=40), 0)
    all_pairs.activate("s", 2, Window(count=40), 0)
    near.memory.lists["limit"][near._row(near.slot("s"))] = 3
    for start in range(0, 2000, 200):
        points, times, ids = random.random((200, 2)), start + 1 + np.arange(200), [f"e{start + i}" for i in range(200)]
        heard = near.publish_batch(ids, times, np.full(200, NEVER), points)
        far = -np.sqrt((points[:, 0] - 0.5) ** 2 + (points[:, 1] - 0.5) ** 2)
        columns = all_pairs.publish_batch(ids, times, np.full(200, NEVER), np.arange(201), np.zeros(200), far)
        assert sorted(heard) == sorted(columns)
    near.check()


@pytest.mark.parametrize("kind", ["time", "count"])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_near_an_ideal_point_is_what_windows_says_of_all_distances(kind, dimensions):
    random = np.random.default_rng(11)
    near, all_pairs = NearWindows(dimensions), Windows()
    centres = random.integers(0, 64, (40, dimensions)) / 64
    for s, centre in enumerate(centres):
        k, span, error = int(random.integers(1, 6)), int(random.integers(20, 150)), [None, 0.01][s % 2]
        window = Window(duration=span) if kind == "time" else Window(count=span)
        near.activate(f"s{s}", centre, k, window, 0, error)
        all_pairs.activate(f"s{s}", k, window, 0, error)
    heard = {"near": [], "all": []}
    for start in range(0, 2000, 400):
        points = random.integers(0, 64, (400, dimensions)) / 64
        times = start + np.arange(400) - (random.random(400) < 0.05) * random.integers(0, 30, 400)
        expires = np.where(random.random(400) < 0.05, times + random.integers(0, 100, 400), NEVER)
        ids = [f"e{start + i}" for i in range(400)]
        near.balls_per_event = 0 if start == 800 else 64
        heard["near"] += near.publish_batch(ids, times, expires, points)
        squares = np.zeros((400, 40))
        for d in range(dimensions):
            squares += (points[:, d, None] - centres[None, :, d]) ** 2
        slots = np.tile(np.arange(40), 400)
        columns = all_pairs.publish_batch(ids, times, expires, np.arange(401) * 40, slots, -np.sqrt(squares).ravel())
        heard["all"] += columns
    assert sorted(heard["near"]) == sorted(heard["all"])
    assert near.stats["refills"] > 0
    near.check()


def test_promotions_have_their_instants_among_many_lists():
    """Deadlines are kept in blocks, each with a bound that may be too early: the clock still stops at every one, in order."""
    rng = np.random.default_rng(5)
    windows, oracle = Windows(), WindowsOracle()
    durations = rng.integers(3, 20, 300).tolist()
    for number, duration in enumerate(durations):
        windows.activate(f"s{number}", 1, Window(duration=duration), 0)
        oracle.activate(f"s{number}", 1, duration, None, 0)
    time = 0
    for number in range(60):
        time += int(rng.integers(1, 7))
        concerned = [(f"s{s}", float(rng.integers(0, 4))) for s in rng.choice(300, 60, replace=False).tolist()]
        event = (f"e{number}", time, None, concerned)
        assert sorted(windows.publish(*event)) == sorted(oracle.publish(*event))
