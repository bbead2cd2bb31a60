"""A client of a real service: the calls of a topic, its errors, and notifications as they come."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice

import pyarrow as pa
import pytest
import shapely

import tidings as td
from tests.serve.conftest import serving
from tests.serve.running import Running
from tidings.serve.settings import Settings

SCHEMA = {"price": td.Number(0, 10_000), "brand": td.Category(), "place": td.Place(), "about": td.Words(), "made": td.Time()}
OFFER = {"id": "e1", "price": 3200, "brand": "Huawei", "place": (121.44, 36.16), "about": "P30 128GB"}


@pytest.fixture
def service(tmp_path):
    with serving(Settings(tmp_path / "data", open=True)) as client, td.connect(str(client.base_url)) as service:
        yield service


@pytest.fixture
def deals(service):
    return service.make("deals", SCHEMA, clock="given")


def test_the_same_calls_give_the_same_answers(deals):
    local = td.Topic("deals", SCHEMA)
    box = "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"
    for topic in (local, deals):
        topic.subscribe("ann", f"price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30')) AND {box}", score=2.0, time=0)
        topic.subscribe("bob", "price < 500", k=5, window=timedelta(days=1), by="-price", time=0)
        topic.subscribe("cat", {"op": "=", "args": [{"property": "brand"}, "Huawei"]}, owner="u17", tags=["phones"], time=0)
        topic.subscribe_many(pa.table({"id": ["dan", "eve"], "price.lo": [1.0, None], "price.hi": [None, 3000.0]}), time=0)
    assert deals.match(OFFER, time=0) == local.match(OFFER, time=0)
    assert deals.match(OFFER, 1, time=0) == local.match(OFFER, 1, time=0) == [td.Match("e1", "ann", 2.0)]
    assert deals.match(OFFER, 3, relaxed=True, time=0) == local.match(OFFER, 3, relaxed=True, time=0)
    events = [OFFER, {"id": "e2", "price": 100, "made": datetime(2026, 1, 1, tzinfo=UTC), "place": shapely.Point(1, 2)}]
    assert deals.match_batch(events, time=0).equals(local.match_batch(events, time=0))
    assert deals.explain(OFFER, "bob", time=0) == local.explain(OFFER, "bob", time=0)
    assert str(deals.explain(OFFER, "bob", time=0)).endswith("price is 3200, wanted below 500")
    assert deals.publish(OFFER, time=1) == local.publish(OFFER, time=1)
    assert deals.publish_batch(events[1:], time=2) == local.publish_batch(events[1:], time=2)
    table = pa.table({"id": ["e3"], "price": [40.0]})
    assert deals.publish_batch(table, time=3).table().equals(local.publish_batch(table, time=3).table())
    assert deals.top("bob", time=3) == local.top("bob", time=3)
    assert deals.preview("price < 500", time=3) == local.preview("price < 500", time=3)
    assert deals.search("price < 500", time=3).equals(local.search("price < 500", time=3))
    assert deals.update("bob", k=1, time=3) == local.update("bob", k=1, time=3)
    assert deals.move("ann", (0.5, 0.5), time=3) == local.move("ann", (0.5, 0.5), time=3)
    assert [*deals] == [*local]
    assert deals.subscription("cat") == local.subscription("cat")
    assert [s.id for s in deals.subscriptions(owner="u17")] == [s.id for s in deals.subscriptions(tag="phones")] == ["cat"]
    assert deals.advance(200_000) == local.advance(200_000)
    deals.unsubscribe("ann")
    assert deals.unsubscribe_many(["bob", "nobody"]) == 1
    assert ("ann" in deals, "cat" in deals, len(deals)) == (False, True, 3)
    deals.flush()
    deals.merge()
    assert deals.stats()["subscriptions"] == 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda t: t.subscribe("a", "prize < 5"), td.errors.FilterError),
        (lambda t: t.subscribe("a", k=-1), td.errors.SubscriptionError),
        (lambda t: t.publish({"id": "e", "price": "dear"}), td.errors.EventError),
        (lambda t: t.unsubscribe("nobody"), td.errors.SubscriptionError),
        (lambda t: t.subscribe_many(pa.table({"id": ["a", "b"], "filter": ["price < 5", "prize < 5"]})), td.errors.BulkError),
        (lambda t: t.top("nobody"), td.errors.SubscriptionError),
    ],
)
def test_errors_are_those_of_a_topic(deals, call, error):
    with pytest.raises(error) as remote:
        call(deals)
    with pytest.raises(error) as local:
        call(td.Topic("deals", SCHEMA))
    assert type(remote.value) is type(local.value)
    if error is not td.errors.BulkError:
        assert str(remote.value) == str(local.value)
    else:
        assert remote.value.rows == local.value.rows


def test_a_filter_that_never_matches_is_said(deals):
    with pytest.warns(td.errors.NeverMatchesWarning):
        deals.subscribe("a", "price < 1 AND price > 2")


def test_what_the_service_alone_refuses(service, deals):
    with pytest.raises(td.errors.ServiceError, match="another schema") as refused:
        service.make("deals", {"price": td.Number()})
    assert refused.value.status == 409
    with pytest.raises(td.errors.ServiceError, match="there is no topic"):
        service["others"].match(OFFER)
    assert [topic["name"] for topic in service.topics()] == ["deals"]
    service.drop("deals")
    assert service.topics() == []


def test_nobody_there():
    with td.connect("http://127.0.0.1:9") as service, pytest.raises(td.errors.ServiceError, match="cannot be reached"):
        service["deals"].publish(OFFER)


def test_what_a_pace_keeps_back_is_counted(deals):
    deals.subscribe("ann", "price < 500", budget="1 per day", time=0)
    for number in range(3):
        deals.publish({"id": f"e{number}", "price": 5}, time=number)
    assert deals.withheld("ann") == 2
    with pytest.raises(td.errors.SubscriptionError, match="there is no subscription 'nobody'"):
        deals.withheld("nobody")


@pytest.mark.parametrize("id", ["a/b", "a/top", "a/withheld", "/", "é ü", "%2F", "a?b#c", ".."])
def test_any_id_has_an_address(deals, id):
    deals.subscribe(id, "price < 5")
    assert deals.subscription(id).id == id
    assert [*deals] == [deals.subscription(id)]
    deals.unsubscribe(id)
    assert len(deals) == 0


def test_posting_is_idempotent(deals):
    deals.subscribe("ann", "price < 500")
    events = [{"id": f"e{number}", "price": number} for number in range(3)]
    assert deals.post(events[0]) == (1, 1, [])
    assert deals.post(events) == (2, 2, ["e0"])
    assert deals.post(pa.Table.from_pylist(events)) == (0, 0, ["e0", "e1", "e2"])


def test_pages_and_consumers(deals):
    deals.subscribe("ann", "price < 500", owner="u17")
    deals.add_consumer("mailer", owner="u17", after=0)
    deals.post([{"id": f"e{number}", "price": number} for number in range(3)])
    page = deals.notifications("ann", limit=2)
    assert [(note.subscription, note.owner, note.event["id"], note.why) for note in page.notifications] == [
        ("ann", "u17", "e0", "matched"),
        ("ann", "u17", "e1", "matched"),
    ]
    with closing(deals.listen(consumer="mailer")) as stream:
        assert [note.event["price"] for note in islice(stream, 2)] == [0, 1]
    deals.acknowledge(page.cursor, consumer="mailer")
    assert [note.event["id"] for note in deals.notifications(consumer="mailer").notifications] == ["e2"]


@pytest.mark.deep
def test_listening_goes_on_after_the_service_was_killed(tmp_path):
    with Running(tmp_path / "data") as running, td.connect(running.url) as service:
        deals = service.make("deals", SCHEMA)
        deals.subscribe("ann", "price < 500")
        with closing(deals.listen("ann", after=0)) as stream:
            deals.post([{"id": f"e{number}", "price": number} for number in range(3)])
            heard = [*islice(stream, 2)]
            running.kill()
            running.start()
            deals.post({"id": "e3", "price": 3})
            heard += [*islice(stream, 2)]
        assert [note.event["id"] for note in heard] == ["e0", "e1", "e2", "e3"]
        assert len({note.id for note in heard}) == 4


def test_awaited(tmp_path):
    async def story(url: str) -> None:
        async with td.connect_async(url) as service:
            deals = await service.make("deals", SCHEMA)
            assert await deals.subscribe("ann", "price < 500", owner="u17") == []
            stream = deals.listen(owner="u17", after=0)
            first = asyncio.create_task(anext(stream))
            assert (await deals.post(pa.table({"id": ["e1"], "price": [3.0]}))).told == 1
            assert (await first).event["id"] == "e1"
            [match] = await deals.match({"id": "e2", "price": 1})
            assert match.subscription == "ann"
            assert (await deals.match_batch([{"id": "e2", "price": 1}])).num_rows == 1
            assert [note.why for note in await deals.publish({"id": "e2", "price": 2})] == ["matched"]
            assert (await deals.subscription("ann")).owner == "u17"
            assert [s.id async for s in deals] == ["ann"]
            with pytest.raises(td.errors.FilterError):
                await deals.update("ann", filter="prize < 5")
            assert (await deals.search()).num_rows == 2
            await deals.unsubscribe("ann")
            assert await deals.count() == 0

    with warnings.catch_warnings(), serving(Settings(tmp_path / "data", open=True)) as client:
        warnings.simplefilter("error")
        asyncio.run(story(str(client.base_url)))
