"""Sinks: at least once, in order, signed, given up when it must be, and never in each other's way."""

from __future__ import annotations

import time
from collections import defaultdict
from email.utils import formatdate

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http
from cloudevents.core.formats.json import JSONFormat
from standardwebhooks import Webhook, WebhookVerificationError

from tests.serve.conftest import DEALS, serving
from tests.serve.receiving import Message, Receiver, receiving
from tidings.serve.delivery import couriers, outcomes
from tidings.serve.settings import Settings

AT = "/topics/deals/sinks/shop"
EVENTS = "/topics/deals/events"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Attempts follow each other quickly."""
    monkeypatch.setattr(outcomes, "FIRST", 0.02)
    monkeypatch.setattr(couriers, "SAVED", 0.05)


@pytest.fixture
def deals(tmp_path):
    with serving(Settings(tmp_path / "data", open=True, allow=("127.0.0.1",))) as client:
        client.put("/topics/deals", json=DEALS)
        for name in ("ann", "bob", "cat"):
            client.put(f"/topics/deals/subscriptions/{name}", json={"owner": f"o-{name}", "score": 2})
        yield client


def until(true, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_webhook_is_signed_and_says_all(deals):
    with receiving() as receiver:
        made = deals.put(AT, json={"kind": "webhook", "url": receiver.url, "owner": "o-ann", "headers": {"X-Mine": "1"}})
        assert made.status_code == 201
        deals.post(EVENTS, json={"id": "e", "price": 3})
        [message] = receiver.wait(1)
        said = Webhook(made.json()["secret"]).verify(message.body, message.headers)
        note = said["data"]
        assert (said["type"], note["event"], note["subscription"], note["owner"]) == (
            "tidings.notification",
            {"id": "e", "price": 3.0},
            "ann",
            "o-ann",
        )
        assert (note["score"], note["rank"], note["why"]) == (2.0, None, "matched")
        assert (message.headers["webhook-id"], message.headers["x-mine"]) == (note["id"], "1")
        with pytest.raises(WebhookVerificationError):
            Webhook("whsec_" + "A" * 32).verify(message.body, message.headers)
        until(lambda: deals.get(AT).json()["behind"] == 0)
        described = deals.get(AT).json()
        assert (described["delivered"], described["headers"], "secret" in described) == (1, {"x-mine": "***"}, False)


def test_in_order_for_each_subscription_though_some_fail(deals):
    fails = defaultdict(int)

    def answer(message: Message):
        id = message.headers["webhook-id"]
        fails[id] += 1
        return (500, {}) if fails[id] == 1 and hash(id) % 3 == 0 else (204, {})

    with receiving(Receiver(answer)) as receiver:
        deals.put(AT, json={"kind": "webhook", "url": receiver.url})
        for first in range(0, 60, 20):
            deals.post(EVENTS, json=[{"id": f"e{n:02}"} for n in range(first, first + 20)])
        told = defaultdict(list)
        for message in receiver.wait(180):
            told[message.json["data"]["subscription"]].append(message.json["data"]["event"]["id"])
        assert dict(told) == {name: [f"e{n:02}" for n in range(60)] for name in ("ann", "bob", "cat")}


def test_cloudevents_that_the_sdk_reads(deals):
    with receiving() as receiver:
        deals.put(AT, json={"kind": "cloudevents", "url": receiver.url, "subscription": "bob"})
        deals.post(EVENTS, json={"id": "e", "price": 3})
        [message] = receiver.wait(1)
        event = from_http(HTTPMessage(message.headers, message.body), JSONFormat())
        assert (event.get_type(), event.get_subject(), event.get_source()) == ("tidings.notification", "bob", "/topics/deals")
        assert event.get_data()["event"] == {"id": "e", "price": 3.0}
        assert event.get_id() == event.get_data()["id"]


def test_batches(deals):
    with receiving() as receiver:
        deals.put(AT, json={"kind": "cloudevents", "url": receiver.url, "batch": 50, "subscription": "ann"})
        deals.post(EVENTS, json=[{"id": f"e{n:03}"} for n in range(200)])
        until(lambda: sum(len(message.json) for message in receiver.taken) == 200)
        assert [one["data"]["event"]["id"] for m in receiver.taken for one in m.json] == [f"e{n:03}" for n in range(200)]
        assert all(len(message.json) <= 50 for message in receiver.taken)
        assert receiver.taken[0].headers["content-type"] == "application/cloudevents-batch+json"


def test_retry_after_is_honoured(deals):
    def answer(message: Message):
        return (
            (204, {})
            if len(receiver.messages) > 2
            else (429, {"Retry-After": ["1", formatdate(time.time() + 2, usegmt=True)][len(receiver.messages) - 1]})
        )

    with receiving(Receiver(answer)) as receiver:
        deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann"})
        deals.post(EVENTS, json={"id": "e"})
        receiver.wait(1)
        first, second, third = (message.at for message in receiver.messages)
        assert second - first >= 1
        assert third - second >= 0.5
        assert len({message.headers["webhook-id"] for message in receiver.messages}) == 1


def test_410_switches_the_sink_off_and_put_switches_it_on(deals):
    with receiving(Receiver(lambda message: (410, {}))) as receiver:
        deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann"})
        deals.post(EVENTS, json=[{"id": "a"}, {"id": "b"}])
        until(lambda: deals.get(AT).json()["status"] == "off")
        assert "410" in deals.get(AT).json()["reason"]
        deals.post(EVENTS, json={"id": "c"})
        receiver.answer = lambda message: (204, {})
        time.sleep(0.2)
        assert len(receiver.messages) == 1
        assert deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann"}).status_code == 200
        assert [m.json["data"]["event"]["id"] for m in receiver.wait(3)] == ["a", "b", "c"]


def test_dead_letters_are_listed_read_and_sent_again(deals):
    def answer(message: Message):
        return (422, {}) if b'"bad"' in message.body and not better else (204, {})

    better = []
    with receiving(Receiver(answer)) as receiver:
        deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann", "batch": 10})
        deals.post(EVENTS, json=[{"id": "a"}, {"id": "bad"}, {"id": "b"}])
        until(lambda: deals.get(AT).json()["dead_letters"] == 1)
        [letter] = deals.get(f"{AT}/dead-letters").json()["dead_letters"]
        assert (letter["reason"], letter["notification"]["event"]["id"]) == ("the receiver answered 422", "bad")
        address = f"{AT}/dead-letters/{letter['number']}"
        assert deals.get(address).json()["id"] == letter["id"]
        assert deals.post(f"{AT}/dead-letters/resend").json()["sent"] == 0
        better.append(True)
        assert deals.post(f"{AT}/dead-letters/resend", json={"numbers": [letter["number"]]}).json() == {"sent": 1, "failed": []}
        assert receiver.taken[-1].json["data"][0]["id"] == letter["id"]
        assert deals.get(address).status_code == 404
        assert deals.delete(address).status_code == 404


def test_what_is_not_taken_in_time_is_given_up(deals):
    with receiving(Receiver(lambda message: (503, {}))) as receiver:
        deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann", "give_up": 0.1})
        deals.post(EVENTS, json={"id": "e"})
        until(lambda: deals.get(AT).json()["dead_letters"] == 1)
        assert "given up after" in deals.get(f"{AT}/dead-letters").json()["dead_letters"][0]["reason"]
        assert len(receiver.messages) > 1


def test_secrets_rotate_with_both_valid_for_a_while(deals):
    with receiving() as receiver:
        old = deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann"}).json()["secret"]
        new = deals.post(f"{AT}/rotate", json={"overlap": 60}).json()["secret"]
        deals.post(EVENTS, json={"id": "a"})
        [message] = receiver.wait(1)
        for secret in (old, new):
            Webhook(secret).verify(message.body, message.headers)
        newest = deals.post(f"{AT}/rotate", json={"overlap": 0}).json()["secret"]
        deals.post(EVENTS, json={"id": "b"})
        message = receiver.wait(2)[1]
        Webhook(newest).verify(message.body, message.headers)
        for secret in (old, new):
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(message.body, message.headers)


def test_a_dead_sink_holds_nobody_up(deals):
    with receiving() as receiver:
        deals.put("/topics/deals/sinks/dead", json={"kind": "webhook", "url": "http://127.0.0.1:9/"})
        deals.put(AT, json={"kind": "webhook", "url": receiver.url, "subscription": "ann"})
        deals.post(EVENTS, json=[{"id": f"e{n}"} for n in range(50)])
        receiver.wait(50)
        until(lambda: deals.get(AT).json()["behind"] == 0)
        dead = deals.get("/topics/deals/sinks/dead").json()
        assert (dead["delivered"], dead["behind"] > 0, "cannot be called" in dead["failing"]) == (0, True, True)


def test_a_sink_goes_on_after_a_restart(tmp_path):
    settings = Settings(tmp_path / "data", open=True, allow=("127.0.0.1",))
    with receiving(Receiver(lambda message: (503, {}))) as receiver:
        with serving(settings) as client:
            client.put("/topics/deals", json=DEALS)
            client.put("/topics/deals/subscriptions/ann", json={})
            client.put(AT, json={"kind": "webhook", "url": receiver.url})
            client.post(EVENTS, json=[{"id": f"e{n}"} for n in range(5)])
            until(lambda: receiver.messages)
        receiver.answer = lambda message: (204, {})
        with serving(settings):
            assert [m.json["data"]["event"]["id"] for m in receiver.wait(5)] == [f"e{n}" for n in range(5)]
        seen = len(receiver.taken)
        with serving(settings):
            time.sleep(0.3)
        assert len(receiver.taken) == seen


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"kind": "pigeon"}, "kind is 'pigeon'"),
        ({"kind": ["webhook"]}, "kind is ['webhook']"),
        ({"kind": "webhook"}, "url is None"),
        ({"kind": "webhook", "url": "file:///etc/passwd"}, "url is"),
        ({"kind": "webhook", "url": "http://a b/"}, "url is"),
        ({"kind": "webhook", "url": "http://x/", "batch": 0}, "batch is 0"),
        ({"kind": "webhook", "url": "http://x/", "secret": "abc"}, "secret"),
        ({"kind": "webhook", "url": "http://x/", "headers": {"Host": "y"}}, "headers"),
        ({"kind": "webhook", "url": "http://x/", "headers": {"X": "a\r\nb: c"}}, "headers"),
        ({"kind": "kafka", "brokers": "x"}, "topic is None"),
        ({"kind": "postgres", "dsn": "x", "channel": "c", "url": "http://x/"}, "field 'url'"),
    ],
)
def test_sinks_that_cannot_be(deals, asked, sentence):
    answer = deals.put(AT, json=asked)
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True), answer.json()
