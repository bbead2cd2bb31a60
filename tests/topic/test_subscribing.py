"""Reading subscriptions back: what was given, by owner, by tag, in pages, through flushes, merges and reopening."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tidings as td
from tidings.errors import SubscriptionError

SCHEMA = {"price": td.Number(), "place": td.Place(plane=True), "brand": td.Category()}
IDS = st.sampled_from([f"s{i}" for i in range(9)] + ["ä", "S"])
OWNERS = st.sampled_from([None, "u1", "u2", "ü"])
TAGS = st.lists(st.sampled_from(["food", "rent", "ä"]), max_size=3)
FILTERS = st.sampled_from([None, "price<5", "price < 5 OR brand = 'a'", "NOT (price  = 1)", "brand LIKE 'a%'"])
BOXES = st.sampled_from(["S_INTERSECTS(place, BBOX(0, 0, 2, 2))", "price < 5 AND S_INTERSECTS(place, BBOX(1, 1, 2, 4))"])
POINTS = st.tuples(st.integers(-8, 8), st.integers(-8, 8)).map(lambda p: (p[0] / 8, p[1] / 8))
CIRCLES = st.tuples(POINTS, st.sampled_from([0.5, 3.0]))
EVENTS = [{"id": "e", "price": p, "place": (x / 2, x / 4), "brand": b} for p in (1, 5) for x in range(-3, 6) for b in ("a", "b")]


class Said(NamedTuple):
    """What a subscription is read back as."""

    filter: str | None
    owner: str | None
    tags: tuple[str, ...]
    within: Any = None
    centre: Any = None


class Listing(RuleBasedStateMachine):
    @initialize(durable=st.booleans())
    def begin(self, durable: bool) -> None:
        self.folder = Path(tempfile.mkdtemp()) if durable else None
        self.topic = td.open(self.folder, "t", SCHEMA) if self.folder is not None else td.Topic("t", SCHEMA)
        self.said: dict[str, Said] = {}

    def teardown(self) -> None:
        if hasattr(self, "topic"):
            self.topic.close()
            if self.folder is not None:
                shutil.rmtree(self.folder)

    @rule(id=IDS, filter=FILTERS | BOXES, owner=OWNERS, tags=TAGS)
    def subscribe(self, id: str, filter: str | None, owner: str | None, tags: list[str]) -> None:
        self.topic.subscribe(id, filter, owner=owner, tags=tags, time=0)
        self.said[id] = Said(filter, owner, tuple(sorted(set(tags))))

    @rule(id=IDS, filter=FILTERS, circle=CIRCLES, owner=OWNERS)
    def subscribe_within(self, id: str, filter: str | None, circle: Any, owner: str | None) -> None:
        self.topic.subscribe(id, filter, within=circle, owner=owner, time=0)
        self.said[id] = Said(filter, owner, (), circle)

    @rule(rows=st.dictionaries(IDS, st.tuples(FILTERS, OWNERS, st.none() | TAGS), min_size=1, max_size=4))
    def load(self, rows: dict[str, Any]) -> None:
        filters, owners, tags = zip(*rows.values(), strict=True)
        kinds = {"id": pa.string(), "filter": pa.string(), "owner": pa.string(), "tags": pa.list_(pa.string())}
        columns = dict(zip(kinds, ([*rows], filters, owners, tags), strict=True))
        self.topic.subscribe_many(pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()}), time=0)
        self.said |= {id: Said(filter, owner, tuple(sorted(set(tags or ())))) for id, (filter, owner, tags) in rows.items()}

    @rule(data=st.data(), owner=OWNERS, tags=TAGS)
    def change_names(self, data: st.DataObject, owner: str | None, tags: list[str]) -> None:
        if self.said:
            id = data.draw(st.sampled_from(sorted(self.said)))
            self.topic.update(id, owner=owner, tags=tags, time=0)
            self.said[id] = self.said[id]._replace(owner=owner, tags=tuple(sorted(set(tags))))

    @rule(data=st.data(), filter=FILTERS)
    def change_filter(self, data: st.DataObject, filter: str | None) -> None:
        """A circle stays where it is; a box goes with the filter it came from."""
        if self.said:
            id = data.draw(st.sampled_from(sorted(self.said)))
            self.topic.update(id, filter=filter, time=0)
            self.said[id] = self.said[id]._replace(filter=filter, centre=None)

    @rule(data=st.data(), circle=st.none() | CIRCLES)
    def change_circle(self, data: st.DataObject, circle: Any) -> None:
        round = sorted(id for id, said in self.said.items() if "BBOX" not in (said.filter or ""))
        if round:
            id = data.draw(st.sampled_from(round))
            self.topic.update(id, within=circle, time=0)
            self.said[id] = self.said[id]._replace(within=circle)

    @rule(data=st.data(), point=POINTS)
    def move(self, data: st.DataObject, point: tuple[float, float]) -> None:
        placed = sorted(id for id, said in self.said.items() if said.within is not None or "BBOX" in (said.filter or ""))
        if placed:
            id = data.draw(st.sampled_from(placed))
            self.topic.move(id, point, time=0)
            said = self.said[id]
            there = {"centre": point} if said.within is None else {"within": (point, said.within[1])}
            self.said[id] = said._replace(**there)

    @rule(id=IDS)
    def unsubscribe(self, id: str) -> None:
        if id in self.said:
            self.topic.unsubscribe(id)
            del self.said[id]

    @rule(merge=st.booleans())
    def pack(self, merge: bool) -> None:
        self.topic.merge() if merge else self.topic.flush()

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        if self.folder is not None:
            self.topic.close() if clean else self.topic.abandon()
            self.topic = td.open(self.folder)

    @rule(owner=OWNERS, tag=st.sampled_from([None, "food", "ä", "none"]), after=st.none() | IDS, limit=st.integers(0, 4))
    def page(self, owner: str | None, tag: str | None, after: str | None, limit: int) -> None:
        asked = [
            id
            for id, said in sorted(self.said.items())
            if (owner is None or said.owner == owner) and (tag is None or tag in said.tags) and (after is None or id > after)
        ]
        assert [s.id for s in self.topic.subscriptions(owner=owner, tag=tag, after=after, limit=limit)] == asked[:limit]

    @invariant()
    def all_are_read_back(self) -> None:
        if hasattr(self, "topic"):
            assert {s.id: Said(s.filter, s.owner, s.tags, s.within, s.centre) for s in self.topic} == self.said
            assert [s.id for s in self.topic] == sorted(self.said)
            assert all((id in self.topic) == (id in self.said) for id in ("s0", "s1", "ä", "nobody"))

    @rule()
    def what_is_read_back_is_what_matches(self) -> None:
        """A topic made of what is read back answers as this one."""
        again = td.Topic("again", SCHEMA)
        for id, said in self.said.items():
            again.subscribe(id, said.filter, within=said.within, time=0)
            if said.centre is not None:
                again.move(id, said.centre, time=0)
        for event in EVENTS:
            assert self.topic.match(event, time=0) == again.match(event, time=0)


Listing.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestListing = Listing.TestCase


def test_a_page_follows_another() -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe_many(pa.table({"id": [f"s{i:04d}" for i in range(2500)], "owner": ["ab"[i % 2] for i in range(2500)]}), time=0)
    topic.subscribe("s0000a", "price < 5", time=0)
    assert [s.id for s in topic] == sorted([f"s{i:04d}" for i in range(2500)] + ["s0000a"])
    assert [s.id for s in topic.subscriptions(owner="b", after="s2490")] == [f"s{i}" for i in range(2491, 2500, 2)]


def test_what_is_no_name_is_refused_in_one_sentence() -> None:
    topic = td.Topic("t", SCHEMA)
    for wrong, sentence in [
        (lambda: topic.subscribe("a", tags="food"), "tags is 'food': a list of strings is accepted"),
        (lambda: topic.subscribe("a", tags=["x", ""]), "tags is '': a string that is not empty is accepted"),
        (lambda: topic.subscriptions(owner=3), "owner is 3: a string is accepted"),
        (lambda: topic.subscriptions(limit=-1), "k is -1"),
        (lambda: topic.update("a", owner="x"), "there is no subscription 'a'"),
    ]:
        with pytest.raises(SubscriptionError, match=f"^{sentence}"):
            wrong()
    with pytest.raises(TypeError, match="windw"):
        topic.subscribe("a", windw="1 day")
    with pytest.raises(td.errors.BulkError, match="row 1: tags is ''"):
        topic.subscribe_many(pa.table({"id": ["a", "b"], "tags": [["x"], ["y", ""]]}))


def test_what_a_thing_is_stands_in_its_repr() -> None:
    topic = td.Topic("deals", SCHEMA)
    topic.subscribe("ann", "price < 5", k=3, window="1 day", by="-price", owner="u17", tags=["food"], time=0)
    assert repr(topic) == "<Topic 'deals': 1 subscriptions, 0 live events; price Number, place Place, brand Category>"
    said = "Subscription('ann', 'price < 5', k=3, window='1 d', by='-price', owner='u17', tags=('food',))"
    assert repr(topic.subscription("ann")) == said


@pytest.mark.parametrize(
    ("key", "ranking", "sentence"),
    [
        (None, {"window": "1 day"}, "subscription 'a' has a window and no k: every match is told, as without a window"),
        (None, {"by": "-price"}, "subscription 'a' has a by and no k: every match is told, and none is ranked"),
        (
            "brand",
            {"k": 3, "window": "5 events"},
            "subscription 'a' has a window of so many events, which a keyed topic does not ask",
        ),
    ],
)
def test_what_has_no_effect_is_said(key, ranking, sentence) -> None:
    topic = td.Topic("t", SCHEMA, key=key)
    with pytest.warns(td.errors.RankingWarning, match=f"^{sentence}"):
        topic.subscribe("a", "price < 5", **ranking, time=0)
    topic.subscribe("b", "price < 5", time=0)
    with pytest.warns(td.errors.RankingWarning, match=f"^{sentence}".replace("'a'", "'b'")):
        topic.update("b", **ranking, time=0)
    rows = pa.table({"id": ["z", "a"], **{name: pa.array([None, value]) for name, value in ranking.items()}})
    with pytest.warns(td.errors.RankingWarning, match=f"^{sentence}"):
        topic.subscribe_many(rows, time=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        topic.subscribe_many(pa.table({"id": ["d"], "k": [1], "by": ["-price"]}), time=0)
        topic.subscribe("c", "price < 5", k=1, by="-price", time=0)
        topic.update("b", owner="u", time=0)


def test_a_closed_topic_says_so() -> None:
    topic = td.Topic("deals", SCHEMA)
    topic.subscribe("a", "price < 5", time=0)
    topic.close()
    topic.close()
    acts = [
        lambda: topic.match({"id": "e"}),
        lambda: topic.match_batch([{"id": "e"}]),
        lambda: topic.publish({"id": "e"}),
        lambda: topic.subscribe("b"),
        lambda: topic.unsubscribe("a"),
        lambda: topic.search(),
        lambda: topic.explain({"id": "e"}, "a"),
        lambda: topic.preview("price < 5"),
        lambda: len(topic),
        lambda: "a" in topic,
        lambda: [*topic],
    ]
    for act in acts:
        with pytest.raises(td.errors.StorageError, match=r"^the topic 'deals' was closed: open it again$"):
            act()
