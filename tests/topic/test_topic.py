"""One state machine over the whole topic, in memory and durable, against the oracles."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tidings as td
from tests.hostile import hostile
from tests.oracle.gates import GateOracle
from tests.oracle.topic import OracleMatch, TopicOracle
from tests.oracle.windows import Published, WindowsOracle
from tidings.durable import event_batches, waiting
from tidings.match.answers.ordering import match_table
from tidings.match.store import definition
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter
from tidings.model.values.window import parse_window
from tidings.rank.nearness import ideal_point
from tidings.rank.relevance import relevance_of
from tidings.topic.moving import moved

pytestmark = pytest.mark.filterwarnings("ignore::tidings.errors.DroppedWarning")
SCHEMA = td.Schema(
    {
        "price": td.Number(0, 8),
        "size": td.Number(),
        "brand": td.Category(),
        "made": td.Time(),
        "place": td.Place(plane=True),
        "about": td.Words(),
    }
)
EIGHTHS = st.integers(-2, 66).map(lambda n: n / 8)
BRANDS = st.sampled_from(["a", "b", "ab", "é"])
WORDS = st.sampled_from(["red", "green", "blue", "p30"])
ASKED = st.one_of(WORDS, WORDS, st.sampled_from(["reds", "gre*", "green blue", "red green blue", "blue p3*", "#red"]))
"""Of a set of words these are words; in a language they are stems, prefixes and phrases too."""
TEXTS = [td.Words(), td.Words(language="english", keep="#")]
TIMES = st.integers(0, 40)
IDS = st.sampled_from([f"s{i}" for i in range(12)])
EVENT_IDS = st.sampled_from([f"e{i}" for i in range(12)])
SECOND = 1_000_000


def instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def predicates() -> st.SearchStrategy[str]:
    def interval(pair: tuple[float, float], name: str) -> str:
        return f"{name} BETWEEN {min(pair)} AND {max(pair)}"

    def box(corners: tuple[float, float, float, float]) -> str:
        a, b, c, d = corners
        return f"S_INTERSECTS(place, BBOX({min(a, c)}, {min(b, d)}, {max(a, c)}, {max(b, d)}))"

    pair = st.tuples(EIGHTHS, EIGHTHS)
    names = st.sampled_from(["price", "size"])
    return st.one_of(
        st.builds(interval, pair, names),
        st.builds(lambda name, op, x: f"{name} {op} {x}", names, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), EIGHTHS),
        st.builds(lambda b: f"brand = '{b}'", BRANDS),
        st.builds(lambda b: f"brand IN ({', '.join(repr(x) for x in b)})", st.lists(BRANDS, min_size=1, max_size=3, unique=True)),
        st.builds(lambda b: f"NOT (brand = '{b}')", BRANDS),
        st.builds(lambda b: f"brand LIKE '{b}%'", BRANDS),
        st.builds(lambda n: f"{n} IS NULL", st.sampled_from(["price", "brand", "place", "about"])),
        st.builds(lambda n: f"{n} IS NOT NULL", st.sampled_from(["price", "brand", "place", "about"])),
        st.builds(box, st.tuples(EIGHTHS, EIGHTHS, EIGHTHS, EIGHTHS)),
        st.builds(
            lambda w: f"A_CONTAINS(about, ({', '.join(repr(x) for x in w)}))", st.lists(ASKED, min_size=1, max_size=3, unique=True)
        ),
        st.builds(
            lambda w: f"A_OVERLAPS(about, ({', '.join(repr(x) for x in w)}))", st.lists(ASKED, min_size=1, max_size=2, unique=True)
        ),
        st.builds(lambda t: f"T_AFTER(made, TIMESTAMP('{instant(t)}'))", TIMES),
        st.just("price < size"),
    )


FILTERS = st.builds(
    lambda parts, joiners: "".join(f" {j} ({p})" if i else f"({p})" for i, (p, j) in enumerate(zip(parts, joiners, strict=False))),
    st.lists(predicates(), min_size=1, max_size=3),
    st.lists(st.sampled_from(["AND", "AND", "OR"]), min_size=3, max_size=3),
)


@st.composite
def events(draw: st.DrawFn) -> dict[str, object]:
    event: dict[str, object] = {"id": draw(EVENT_IDS)}
    parts = {
        "price": EIGHTHS,
        "size": EIGHTHS,
        "brand": st.one_of(BRANDS, st.just("unknown")),
        "made": TIMES.map(instant),
        "place": st.one_of(
            st.tuples(EIGHTHS, EIGHTHS), st.tuples(EIGHTHS, EIGHTHS).map(lambda p: (p[0], p[1], p[0] + 1, p[1] + 1))
        ),
        "about": st.lists(st.one_of(WORDS, st.sampled_from(["other", "Greens", "#red"])), max_size=4).map(" ".join),
    }
    for name, strategy in parts.items():
        if draw(st.integers(0, 4)):
            event[name] = draw(strategy)
    if draw(st.booleans()):
        event["expires"] = draw(TIMES)
    return event


@st.composite
def vague_events(draw: st.DrawFn) -> dict[str, object]:
    """Events with ranges and uncertain values; chances are eighths, so expectations are exact."""
    event = draw(events())
    ranges = st.tuples(EIGHTHS, EIGHTHS).map(lambda pair: td.Between(min(pair), max(pair)))
    chances = st.sampled_from([(1.0,), (0.5, 0.5), (0.25, 0.75), (1.0, 3.0, 4.0)])

    def uncertain(values: st.SearchStrategy) -> st.SearchStrategy:
        return chances.flatmap(
            lambda weights: st.lists(values, min_size=len(weights), max_size=len(weights), unique=True).map(
                lambda drawn: td.Uncertain(dict(zip(drawn, weights, strict=True)))
            )
        )

    forms = {"price": st.one_of(ranges, uncertain(EIGHTHS)), "size": ranges, "brand": uncertain(BRANDS)}
    for name in draw(st.lists(st.sampled_from([*forms]), min_size=1, unique=True)):
        event[name] = draw(forms[name])
    return event


SCORES = st.one_of(st.integers(0, 3).map(float), st.sampled_from(["1 + 0.5 * price", "size - price", "1e308 + 1e308 * price"]))
ANY_FILTERS = st.one_of(st.sampled_from([None, "TRUE", "price > 9 AND price < 1"]), FILTERS, FILTERS, FILTERS)
"""Those too that match everything, or nothing."""
KS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([100_000, 2**31 - 1]))
BY = [None, None, "-price", "price / size", "price * 1e308", '{"by": "size", "decay": "2 s"}']
RANKINGS = [
    {},
    {},
    {"k": 1, "window": "2 s"},
    {"k": 2, "window": "3 events", "by": "-price"},
    {"k": 1, "by": "price / size"},
    {"window": "2 s"},
    {"expires": 3},
    {"k": 2, "expires": 5},
    {"k": 2, "per": "brand", "by": "-price"},
    {"k": 1, "window": "day", "tz": "Asia/Kolkata", "per": "size"},
    {"k": 2, "window": "PT2S", "per": "id"},
]
POISON = hostile("price")
TERMS = {
    "k": st.integers(0, 3),
    "window": st.sampled_from([None, "2 s", "3 events", "1 hour", "day"]),
    "by": st.sampled_from([None, "-price", "size", "price / size"]),
    "per": st.sampled_from([None, "brand", "id"]),
}
PACES = [
    {"budget": "2 per hour"},
    {"budget": "3 per day", "cooldown": "2 s"},
    {"cooldown": "PT3S"},
    {"digest": "day"},
    {"digest": "at 05:30"},
]


class TopicMachine(RuleBasedStateMachine):
    """`time` is the machine's own and only grows."""

    def __init__(self) -> None:
        super().__init__()
        self.folder: Path | None = None
        self.windows = WindowsOracle()
        self.gates: dict[str, GateOracle] = {}
        self.published: dict[str, tuple[int, int]] = {}
        """as the how-manieth, and when"""
        self.time = 0

    def make(self) -> td.Topic:
        return td.Topic("t", self.schema)

    @initialize(
        tiny=st.sampled_from([0, definition.TINY]),
        poison=st.lists(st.sampled_from([*POISON]), max_size=6, unique=True),
        words=st.sampled_from(TEXTS),
    )
    def start(self, tiny, poison, words) -> None:
        """Single events are answered by arrays, or by the definition; some of those who mean harm are there from the beginning."""
        self.schema = td.Schema({**SCHEMA, "about": words})
        self.oracle = TopicOracle(self.schema)
        # A generation begins with a match, so the topic is asked before the oracle.
        self.oracle.weight = lambda word: self.topic.store.similar.weight(word)
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(definition, "TINY", tiny)
        self.topic = self.make()
        for id in poison:
            self._subscribe(id, **POISON[id])

    def _subscribe(self, id, filter=None, **ranking) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", td.errors.NeverMatchesWarning)
            self.topic.subscribe(id, filter, time=self.time, **ranking)
            self.oracle.subscribe(id, filter, **ranking)
        self._reactivate(id)

    def _paced(self, notes: list[tuple], events: dict[str, Event]) -> list[tuple]:
        """What is heard of what would be told up to now: (subscription, event, score, rank, why, at)."""
        heard = [note for note in notes if note[0] not in self.gates]
        for note in notes:
            if note[0] in self.gates:
                event = events.get(note[1]) or self.oracle.events.get(note[1])
                per = self.oracle.subscriptions[note[0]].per
                group = None if per is None else self._group(event)(note[0]) if event is not None else note[1]
                self.gates[note[0]].history.append((note[1:], group))
        for id, gate in self.gates.items():
            heard += [(id, *told) for told, _ in gate.heard(self.time * SECOND)]
        return heard

    def teardown(self) -> None:
        self.patch.undo()
        self.topic.close()
        if self.folder is not None:
            shutil.rmtree(self.folder)

    @rule(
        id=IDS,
        filter=ANY_FILTERS,
        score=SCORES,
        k=KS,
        expires=st.one_of(st.none(), TIMES),
        window=st.one_of(st.none(), st.sampled_from(["2 s", "3 events", "PT3S", "day", "week", "month"])),
        by=st.sampled_from(BY),
        per=st.sampled_from([None, None, "brand", "price", "made", "id"]),
        tz=st.sampled_from([None, "Europe/Berlin"]),
        pace=st.sampled_from([{}, {}, *PACES]),
    )
    def subscribe(self, id, filter, score, k, expires, window, by, per, tz, pace) -> None:
        window = None if "digest" in pace else window
        self._subscribe(id, filter, score=score, k=k, window=window, expires=expires, by=by, per=per, tz=tz, **pace)

    @rule(
        id=IDS,
        near=st.dictionaries(st.sampled_from(["price", "size"]), EIGHTHS, min_size=1),
        weight=st.sampled_from([None, 0.25, 4.0]),
        k=st.one_of(st.none(), st.integers(0, 3)),
        window=st.sampled_from(["2 s", "3 events", "5 events"]),
        filter=st.one_of(st.none(), st.none(), FILTERS),
    )
    def subscribe_near(self, id, near, weight, k, window, filter) -> None:
        """Ideal points: without a filter they are reached through their balls, with one through matching."""
        by = json.dumps({"near": near} | ({} if weight is None else {"weights": {next(iter(near)): weight}}))
        self._subscribe(id, filter, k=k, window=window, by=by)

    @rule(ids=st.lists(IDS, min_size=1, max_size=4, unique=True), price=EIGHTHS)
    def subscribe_many_near(self, ids, price) -> None:
        by = json.dumps({"near": {"price": price}})
        self.topic.subscribe_many(
            pa.table({"id": ids, "k": [2] * len(ids), "window": ["3 s"] * len(ids), "by": [by] * len(ids)}), time=self.time
        )
        for id in ids:
            self.oracle.subscribe(id, None, k=2, window="3 s", by=by)
            self._reactivate(id)

    @rule(id=IDS, filter=st.one_of(st.none(), st.just("price <= 4")))
    def change_filter(self, id, filter) -> None:
        clauses = (Clause(),) if filter is None else tuple(compile_filter(self.schema, filter))
        self._change(id, lambda: self.topic.update(id, filter=filter, time=self.time), {"clauses": clauses})

    @rule(id=IDS, terms=st.fixed_dictionaries({}, optional=TERMS))
    def change_terms(self, id, terms) -> None:
        """Another k, window, order or group: how the lists differ is told."""
        before = self.oracle.subscriptions.get(id)
        if before is not None and before.listed is not None and not before.paced:
            window = {"window": parse_window(terms["window"])} if terms.get("window") is not None else {}
            self._change(id, lambda: self.topic.update(id, time=self.time, **terms), terms | window)

    @rule(id=IDS, x=EIGHTHS, y=EIGHTHS)
    def move(self, id, x, y) -> None:
        before = self.oracle.subscriptions.get(id)
        if before is None or all(clause.box is None for clause in before.clauses):
            with pytest.raises(td.errors.SubscriptionError):
                self.topic.move(id, (x, y), time=self.time)
        else:
            clauses = moved(self.schema, before, (x, y)).clauses
            self._change(id, lambda: self.topic.move(id, (x, y), time=self.time), {"clauses": clauses})

    def _change(self, id: str, act: Callable[[], list[td.Notification]], fields: dict[str, object]) -> None:
        """What is told is what differs; what has no list, or gets one, begins anew where its window is another."""
        before = self.oracle.subscriptions.get(id)
        if before is None or before.similarity is not None:
            return
        notes = act()
        self.oracle.update(id, **fields)
        after, told = self.oracle.subscriptions[id], []
        ranked = ("k", "window", "by", "per", "tz")
        named = (*ranked, "clauses", *(("score", "terms") if before.by is None else ()))
        other = {name for name in named if getattr(before, name) != getattr(after, name)}
        if other and before.listed is not None and after.listed is not None:
            reached = {match.number for match in self._live(before)}
            terms = {"k": after.k, "per": after.per is not None, **self._span(after)}
            told = self.windows.change(id, terms, self._live(after), reached, self.time * SECOND)
        elif other and before.listed is None and after.listed is None:
            told = self._differences(before, after)
        if None in (before.listed, after.listed) and (other & {*ranked} or ideal_point(before) != ideal_point(after)):
            self._restart(id)
        if id in self.gates:
            self.gates[id].history += [(note[1:], self._group(self.oracle.events[note[1]])(id)) for note in told]
            told = [(id, *note) for note, _ in self.gates[id].heard(self.time * SECOND)] if told else []
        assert [flat(note) for note in notes] == [(*note[:2], round(note[2], 9), *note[3:]) for note in told]

    def _live(self, s: Subscription) -> list[Published]:
        """The live events that a subscription matches and can rank."""
        found, now = [], self.time * SECOND
        for id, e in sorted(self.oracle.events.items()):
            if (e.expires is None or now < e.expires) and any(clause.holds(self.schema, e.values) for clause in s.clauses):
                number, at = self.published[id]
                score = s.score_of(e.values) if s.by is None or not s.is_ranked else relevance_of(self.schema, s.by)(e.values, at)
                if score is not None and math.isfinite(score):
                    found.append(Published(id, score, at, e.expires, number, self._group(e)(s.id)))
        return found

    def _judged(self, event: Event, match: OracleMatch, now: int) -> float | None:
        by = self.oracle.subscriptions[match.subscription].by
        value = match.score if by is None else relevance_of(self.schema, by)(event.values, now)
        return None if value is None or not math.isfinite(value) else value

    def _reactivate(self, id: str) -> None:
        if id in self.windows.interests:
            self.windows.deactivate(id)
        s = self.oracle.subscriptions.get(id)
        self.gates.pop(id, None)
        if s is not None and s.paced:
            pace = {"budget": None if s.budget is None else (int(s.budget.split()[0]), s.budget.split()[2]), "digest": s.digest}
            pace |= {"cooldown": None if s.cooldown is None else parse_window(s.cooldown).duration, "tz": s.tz or "UTC"}
            self.gates[id] = GateOracle(False, s.k, **pace, per=s.per is not None, expires=s.expires)
        if s is not None and s.is_ranked:
            self._restart(id)

    def _restart(self, id: str) -> None:
        if id in self.windows.interests:
            self.windows.deactivate(id)
        s = self.oracle.subscriptions[id]
        if s.is_ranked:
            span, now = self._span(s), self.time * SECOND
            self.windows.activate(id, s.listed, time=now, expires=s.expires, per=s.per is not None, **span)

    def _span(self, s: Subscription) -> dict[str, object]:
        duration, count, unit = (None, None, None) if s.window is None else (s.window.duration, s.window.count, s.window.calendar)
        return {"duration": duration, "count": count, "calendar": None if unit is None else (unit, s.tz or "UTC")}

    def _differences(self, before: Subscription, after: Subscription) -> list[tuple]:
        """The live events that only the one or only the other matches."""
        now = self.time * SECOND
        if after.expires is not None and after.expires <= now:
            return []
        was, there = ({match.event: match.relevance for match in self._live(s)} for s in (before, after))
        left = [(after.id, id, score, None, "left", now) for id, score in was.items() if id not in there]
        return left + [(after.id, id, score, None, "entered", now) for id, score in there.items() if id not in was]

    def _group(self, event: Event) -> Callable[[str], object]:
        """The value by which a subscription counts one."""

        def group(subscription: str) -> object:
            per = self.oracle.subscriptions[subscription].per
            return None if per is None else event.id if per == "id" else event.values.get(per)

        return group

    @rule(
        id=IDS,
        filter=ANY_FILTERS,
        weights=st.dictionaries(st.sampled_from(["price", "place", "about"]), st.integers(0, 24).map(lambda n: n / 8)),
        score=SCORES,
    )
    def subscribe_weighted(self, id, filter, weights, score) -> None:
        self._subscribe(id, filter, weights=weights, score=score)

    @rule(
        id=IDS,
        filter=ANY_FILTERS,
        alpha=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        theta=st.sampled_from([0.0, 0.1, 0.3, 0.7]),
        expires=st.one_of(st.none(), st.none(), TIMES),
    )
    def subscribe_similar(self, id, filter, alpha, theta, expires) -> None:
        self._subscribe(id, filter, similarity=(alpha, theta), expires=expires)

    @rule(event=events(), k=st.one_of(st.none(), st.integers(0, 4)), aggregate=st.sampled_from(["sum", "max", "min"]))
    def match_relaxed(self, event, k, aggregate) -> None:
        found = self.topic.match(event, k, relaxed=True, aggregate=aggregate, time=self.time)
        assert found == self.oracle.match_relaxed(event, k, aggregate, time=self.time * SECOND)

    @rule(id=IDS)
    def unsubscribe(self, id) -> None:
        if id in self.oracle.subscriptions:
            self.topic.unsubscribe(id)
            self.oracle.unsubscribe(id)
            self._reactivate(id)
        else:
            with pytest.raises(td.errors.SubscriptionError, match="there is no subscription"):
                self.topic.unsubscribe(id)

    @rule(id=IDS, score=st.integers(0, 3).map(float))
    def rescore(self, id, score) -> None:
        fields = {"score": score, "terms": {}, "score_source": None}
        if id in self.oracle.subscriptions and self.oracle.subscriptions[id].similarity is not None:
            self.topic.update(id, score=score, time=self.time)
            self.oracle.update(id, **fields)
        self._change(id, lambda: self.topic.update(id, score=score, time=self.time), fields)

    @rule(
        rows=st.lists(
            st.tuples(IDS, EIGHTHS, EIGHTHS, st.one_of(st.none(), BRANDS), st.integers(0, 3)),
            min_size=1,
            max_size=6,
            unique_by=lambda r: r[0],
        ),
        rankings=st.lists(st.sampled_from(RANKINGS), min_size=6, max_size=6),
    )
    def subscribe_many_of_every_shape(self, rows, rankings) -> None:
        """Rows without a predicate, too, which match everything, and with any ranking."""
        kept = [
            (id, lo if lo <= 4 else None, None if brand is None else [brand], r)
            for (id, lo, _, brand, _), r in zip(rows, rankings, strict=False)
        ]
        names = [("price.lo", pa.float64(), 1), ("brand.in", pa.list_(pa.string()), 2)]
        columns = {"id": [row[0] for row in kept]} | {name: pa.array([row[i] for row in kept], kind) for name, kind, i in names}
        kinds = {"k": pa.int64(), "window": pa.string(), "by": pa.string(), "expires": pa.timestamp("s", "UTC")}
        kinds |= {"per": pa.string(), "tz": pa.string()}
        columns |= {name: pa.array([row[3].get(name) for row in kept], kind) for name, kind in kinds.items()}
        self.topic.subscribe_many(pa.table(columns), time=self.time)
        for id, lo, brands, ranking in kept:
            parts = ([] if lo is None else [f"price >= {lo}"]) + ([] if brands is None else [f"brand = '{brands[0]}'"])
            self.oracle.subscribe(id, " AND ".join(parts) or None, **ranking)
            self._reactivate(id)

    @rule(
        rows=st.lists(
            st.tuples(IDS, EIGHTHS, EIGHTHS, st.one_of(st.none(), BRANDS), st.integers(0, 3)),
            min_size=1,
            max_size=6,
            unique_by=lambda r: r[0],
        )
    )
    def subscribe_many(self, rows) -> None:
        table = pa.table(
            {
                "id": [r[0] for r in rows],
                "price.lo": [min(r[1], r[2]) for r in rows],
                "price.hi": [max(r[1], r[2]) for r in rows],
                "brand.in": [None if r[3] is None else [r[3]] for r in rows],
                "score": [float(r[4]) for r in rows],
            }
        )
        self.topic.subscribe_many(table, time=self.time)
        for id, a, b, brand, score in rows:
            extra = f" AND brand = '{brand}'" if brand is not None else ""
            self.oracle.subscribe(id, f"price BETWEEN {min(a, b)} AND {max(a, b)}{extra}", score=float(score))
            self._reactivate(id)

    @rule(event=events(), k=st.one_of(st.none(), st.integers(0, 4)))
    def match(self, event, k) -> None:
        assert rounded(self.topic.match(event, k, time=self.time)) == rounded(self.oracle.match(event, k, time=self.time * SECOND))

    @rule(batch=st.lists(events(), max_size=5, unique_by=lambda e: e["id"]), k=st.one_of(st.none(), st.integers(0, 2)))
    def match_batch(self, batch, k) -> None:
        table = self.topic.match_batch(batch, k, time=self.time)
        expected = [tuple(m) for event in batch for m in self.oracle.match(event, k, time=self.time * SECOND)]
        found = zip(*(table[c].to_pylist() for c in ("event", "subscription", "score")), strict=True)
        assert rounded(found) == rounded(expected)

    @rule(event=vague_events(), k=st.one_of(st.none(), st.integers(0, 4)))
    def match_vague(self, event, k) -> None:
        found = rounded(self.topic.match(event, k, time=self.time))
        expected = rounded(self.oracle.match(event, k, time=self.time * SECOND))
        assert found == expected
        table = self.topic.match_batch([event], k, time=self.time)
        assert rounded(zip(*(table[c].to_pylist() for c in ("event", "subscription", "score")), strict=True)) == expected

    @rule(event=vague_events(), k=st.one_of(st.none(), st.integers(0, 4)), aggregate=st.sampled_from(["sum", "max", "min"]))
    def match_vague_relaxed(self, event, k, aggregate) -> None:
        found = self.topic.match(event, k, relaxed=True, aggregate=aggregate, time=self.time)
        assert found == self.oracle.match_relaxed(event, k, aggregate, time=self.time * SECOND)

    @rule(event=st.one_of(events(), vague_events()), id=IDS)
    def explain(self, event, id) -> None:
        self.topic.explain(event, time=self.time)
        similar = id in self.oracle.subscriptions and self.oracle.subscriptions[id].similarity is not None
        if id in self.oracle.subscriptions and not similar:
            told = self.topic.explain(event, id, time=self.time)
            scores = {m.subscription: m.score for m in self.oracle.match(event, time=self.time * SECOND)}
            assert told.score == scores.get(id)

    @rule(event=events(), later=st.integers(0, 2))
    def publish(self, event, later) -> None:
        self.time += later
        now = self.time * SECOND
        notes = self.topic.publish(event, time=self.time)
        ranked, plain = [], []
        for match in self.oracle.match(event, time=now):
            (ranked if match.subscription in self.windows.interests else plain).append(match)
        read = self.oracle.publish(event, now)
        judged = [(m.subscription, self._judged(read, m, now)) for m in ranked]
        told = self.windows.publish(read.id, now, read.expires, [(s, r) for s, r in judged if r is not None], self._group(read))
        self.published[read.id] = self.windows.number, now
        expected = [(m.subscription, m.event, m.score, None, "matched", now) for m in plain]
        expected += [(s, e, r, rank or None, why, at) for s, e, r, rank, why, at in told]
        expected = [(*n[:2], round(n[2], 9), *n[3:]) for n in self._paced(in_time(expected), {read.id: read})]
        assert sorted(map(flat, notes), key=repr) == sorted(expected, key=repr)

    @rule(batch=st.lists(events(), min_size=1, max_size=5, unique_by=lambda e: e["id"]))
    def publish_batch(self, batch) -> None:
        """The same as one after the other."""
        now = self.time * SECOND
        notes = self.topic.publish_batch(batch, time=self.time)
        expected, published = [], {}
        for event in batch:
            ranked, plain = [], []
            for match in self.oracle.match(event, time=now):
                (ranked if match.subscription in self.windows.interests else plain).append(match)
            read = published[event["id"]] = self.oracle.publish(event, now)
            judged = [(m.subscription, self._judged(read, m, now)) for m in ranked]
            told = self.windows.publish(read.id, now, read.expires, [(s, r) for s, r in judged if r is not None], self._group(read))
            self.published[read.id] = self.windows.number, now
            expected += [(m.subscription, m.event, round(m.score, 9), None, "matched", now) for m in plain]
            expected += [(s, e, round(r, 9), rank or None, why, at) for s, e, r, rank, why, at in told]
        expected = self._paced(in_time(expected), published)
        assert sorted(map(flat, notes), key=repr) == sorted(expected, key=repr)

    @rule(later=st.one_of(st.integers(0, 3), st.integers(0, 3), st.sampled_from([5 * 3600, 86_400, 9 * 86_400])))
    def advance(self, later) -> None:
        self.time += later
        told = self.windows.advance(self.time * SECOND)
        told = self._paced(in_time([(s, e, round(r, 9), rank or None, why, at) for s, e, r, rank, why, at in told]), {})
        assert sorted(map(flat, self.topic.advance(self.time)), key=repr) == sorted(told, key=repr)

    @rule(later=st.integers(0, 3))
    def tops(self, later) -> None:
        time = self.time + later
        for id, interest in self.windows.interests.items():
            if interest.k is not None:
                found = [(m.event, round(m.score, 9)) for m in self.topic.top(id, time=time)]
                assert found == [(e, round(r, 9)) for e, r in self.windows.top(id, time * SECOND)], id

    @rule(filter=FILTERS)
    def search(self, filter) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", td.errors.NeverMatchesWarning)
            found = self.topic.search(filter, time=self.time)["id"].to_pylist()
            assert found == self.oracle.search(filter, time=self.time * SECOND)

    @rule()
    def flush(self) -> None:
        self.topic.flush()

    @rule()
    def merge(self) -> None:
        self.topic.merge()

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "topic"):
            assert len(self.topic) == len(self.oracle.subscriptions)
            for segment in self.topic.store.snapshot.segments:
                segment.check()
            self.topic.publisher.near.check()
            self.topic.publisher.windows.check()


def test_explain_says_that_a_vague_event_has_no_score():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("s", score="size - price", time=0)
    told = topic.explain({"id": "e", "price": td.Between(0.0, 1.0)}, "s", time=0)
    assert (told.matched, told.score) == (False, None)
    assert "no finite value" in told.reason


def test_words_weigh_something_though_the_first_similarity_subscription_can_never_match():
    topic = td.Topic("t", SCHEMA)
    with pytest.warns(td.errors.NeverMatchesWarning):
        topic.subscribe("never", "price > 9 AND price < 1", similarity=(0.0, 0.0), time=0)
    topic.match({"id": "e", "about": "red"}, time=0)
    topic.subscribe("red", "A_CONTAINS(about, ('red'))", similarity=(0.25, 0.3), time=0)
    assert [m.subscription for m in topic.match({"id": "e", "about": "red"}, time=0)] == ["red"]
    assert topic.match({"id": "e", "about": "blue"}, time=0) == []


def rounded(matches) -> list[tuple[str, str, float]]:
    """Similarities are summed in the order of word codes by the one and of words by the other."""
    return [(event, subscription, round(score, 9)) for event, subscription, score in matches]


def in_time(notes: list[tuple]) -> list[tuple]:
    return sorted(notes, key=lambda note: note[5])


def flat(note: td.Notification) -> tuple[object, ...]:
    return (*note[:2], round(note.score, 9), *note[3:5], round(note.at.timestamp() * SECOND))


class DurableMachine(TopicMachine):
    """Single events and notifications are rows of the registry, others columns."""

    def make(self) -> td.Topic:
        self.patch.setattr(event_batches, "FEWEST", 2)
        self.patch.setattr(waiting, "FEWEST", 2)
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        return td.open(self.folder, "t", self.schema)

    @rule()
    def reopen(self) -> None:
        self.topic.close()
        self.topic = td.open(self.folder)

    @rule()
    def crash(self) -> None:
        """Leave without packing or saving: what the registry holds is all there is."""
        self.topic.abandon()
        self.topic = td.open(self.folder)


FEW = settings(
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestTopic = TopicMachine.TestCase
TestTopic.settings = FEW
TestDurable = DurableMachine.TestCase
TestDurable.settings = settings(FEW, max_examples=15)


def test_a_batch_that_only_the_memtable_answers_is_in_order() -> None:
    topic = td.Topic("t", SCHEMA)
    for id in ("s3", "s1", "s2"):
        topic.subscribe(id, "price < size" if id == "s1" else "price < 4", time=0)
    found = topic.match_batch([{"id": "e1", "price": 1, "size": 2}, {"id": "e2", "price": 2, "size": 3}], time=0)
    assert found["event"].to_pylist() == ["e1"] * 3 + ["e2"] * 3
    assert found["subscription"].to_pylist() == ["s1", "s2", "s3"] * 2


@pytest.mark.parametrize("k", [-1, 1.5, "five", True])
def test_a_k_that_is_no_count_is_refused(k: object) -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("s1", "price < 4", time=0)
    for ask in (topic.match, lambda event, k: topic.match_batch([event], k)):
        with pytest.raises(td.errors.SubscriptionError, match="a whole number from 0"):
            ask({"id": "e1", "price": 1}, k)


@pytest.mark.deep
def test_ideal_points_are_reached_through_their_balls() -> None:
    topic = td.Topic("t", SCHEMA)
    by = [json.dumps({"near": {"price": i / 25, "size": i % 7}}) for i in range(200)]
    table = pa.table({"id": [f"n{i:03}" for i in range(200)], "k": [1] * 200, "window": ["9 events"] * 200, "by": by})
    topic.subscribe_many(table.slice(0, 150), time=0)
    for id, text in zip(table["id"].to_pylist()[150:], by[150:], strict=True):
        topic.subscribe(id, k=1, window="9 events", by=text, time=0)
    topic.subscribe("all", "price >= 0", time=0)
    event = {"id": "e0", "price": 4, "size": 2}
    assert len(topic.match(event, time=1)) == 201
    assert {note.why for note in topic.publish(event, time=1)} == {"entered", "matched"}
    told = topic.publish({"id": "e1", "price": 4, "size": 6}, time=2)
    assert {note.subscription for note in told} == {"all"} | {f"n{i:03}" for i in range(200) if i % 7 > 4}
    assert topic.stats()["near"]["price, size"]["subscriptions"] == 200
    assert topic.explain(event, "n000", time=2).home == ("near",)
    assert topic.explain(event, "n199", time=2).home == ("memtable",)


def test_words_weigh_the_same_through_a_generation_of_similarity():
    topic, oracle = td.Topic("t", SCHEMA), TopicOracle(SCHEMA)
    words = ("red", "green", "blue", "p30")
    generations = set()
    for i in range(60):
        filter = f"A_CONTAINS(about, ('{words[i % 3]}', '{words[i % 4]}', 'w{i}'))"
        for subscribe in (topic.subscribe, oracle.subscribe):
            subscribe(f"s{i}", filter, similarity=(0.0, 0.25))
        if i % 7 == 6:
            topic.unsubscribe(f"s{i - 5}")
            oracle.unsubscribe(f"s{i - 5}")
        event = {"id": "e", "about": [*words, f"w{i}", "nobody's"]}
        before = topic.store.similar.generation
        found = rounded(topic.match(event, time=0))
        similar = topic.store.similar
        if similar.generation > before:
            oracle.weight = None
            assert rounded(oracle.match(event)) == found, "a generation begins with the counts of now"
        oracle.weight = similar.weight
        assert (
            found
            == rounded(oracle.match(event))
            == rounded(tuple(m.values()) for m in topic.match_batch([event], time=0).to_pylist())
        )
        generations.add(similar.generation)
    told = topic.stats()["similarity"]
    assert told["generation"] == len(generations) < 12
    assert told["subscriptions"] == len(oracle.subscriptions)
    assert len(told["parts"]) < 8


def test_explain_says_whether_the_event_came_upon_the_clause():
    schema = td.Schema({"price": td.Number(0, 1000), "about": td.Words()})
    topic = td.Topic("t", schema)
    for i in range(1200):
        topic.subscribe(f"p{i:04d}", f"price BETWEEN {i} AND {i}")
    topic.subscribe("red", "A_CONTAINS(about, ('red', 'rare')) AND price < 5")
    event = {"id": "e", "price": 3.0, "about": "rare thing"}
    assert topic.explain(event, "red").home == ("memtable",)
    assert topic.explain(event, "red").reached == (False,)
    topic.merge()
    red = topic.explain(event, "red")
    assert (red.home, red.matched) == (("words",), False)
    there = [topic.explain({"id": "e", "price": 3.0, "about": words}, "red").reached for words in ("rare", "red", "red rare")]
    assert sorted(there[:2]) == [(False,), (True,)], "it stands under one of its words"
    assert there[2] == (True,)
    assert topic.explain(event, "p0003").reached == (True,)
    assert topic.explain(event, "p0003").matched
    assert topic.explain(event, "p1100").reached == (False,)


def test_explain_tells_a_similarity_in_parts():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("s", "S_INTERSECTS(place, BBOX(0, 0, 4, 4)) AND A_CONTAINS(about, ('red', 'bike'))", similarity=(0.5, 0.6))
    event = {"id": "e", "place": (1, 1), "about": "red car"}
    told = topic.explain(event, "s")
    assert told.matched
    assert told.score == topic.match(event)[0].score == 0.75
    assert told.score_parts == {"place": 0.5, "words": 0.25}
    assert topic.explain({"id": "e", "place": (9, 9), "about": "red car"}, "s").reason == "the similarity is below 0.6"


def test_stats_tell_homes_and_the_work_of_matching():
    topic = td.Topic("t", SCHEMA)
    for i in range(10):
        topic.subscribe(f"s{i}", "price < 4" if i % 2 else "A_CONTAINS(about, ('red'))")
    events = [{"id": "a", "price": 1}, {"id": "b", "about": "red"}]
    for change in (lambda: None, topic.flush, topic.merge):
        change()
        topic.match_batch(events)
    topic.match(events[0])
    told = topic.stats()
    assert told["homes"] == {"ranges": 5, "words": 5}
    assert told["matching"]["events"] == 7
    assert told["matching"]["matches an event"] == 35 / 7 <= told["matching"]["candidates an event"]


def test_a_batch_read_before_a_bulk_load_knows_its_words():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("any", "price >= 0")
    batch = topic._batch([{"id": "e", "price": 1, "about": "red"}])
    topic.subscribe_many(pa.table({"id": ["red", "dear"], "about.all": [["red"], None], "price.lo": [None, 0.5]}))
    found = match_table(batch.ids, topic.store.reader().match(batch, at=0), None)
    assert found["subscription"].to_pylist() == ["any", "dear", "red"], "all of the load is seen, or nothing of it"
