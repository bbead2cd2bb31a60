"""How the console looks with the demo's events, wide and narrow, light and dark: nothing sticks out, and axe-core finds no serious
violation.

The screenshots stay in the test run's folder (`pytest --basetemp` says where).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browsing import PATIENCE, looking, sticks_out
from tests.console.rooms import heard, open_room
from tests.serve.conftest import serving
from tests.serve.receiving import Receiver, receiving
from tidings.client.connecting import connect
from tidings.client.remote_topic import RemoteTopic
from tidings.console import demo
from tidings.serve.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=PATIENCE)
ROOMS = {"live": "offers", "subscriptions": "offers", "explain": "offers", "boards": "stock", "engine": "offers"}
STREAMS = {"live": ["/flow"], "subscriptions": [], "explain": ["/flow"], "boards": ["/notifications", "/painted"], "engine": []}
SERIOUS = ("serious", "critical")
GROUND = {"light": "rgb(250, 249, 246)", "dark": "rgb(18, 20, 23)"}


class Shown:
    """The demo's topics in a service, and more of its events whenever asked."""

    def __init__(self, url: str, offers: RemoteTopic, stock: RemoteTopic) -> None:
        self.url, self.offers, self.stock = url, offers, stock
        self.coming = demo.batches(random.Random(2026))

    def publish(self, batches: int) -> None:
        for events, objects in islice(self.coming, batches):
            self.offers.post(events)
            self.stock.post(objects)

    @property
    def busiest(self) -> str:
        """A subscription with a list."""
        with_lists = [id for id, said in demo.people(random.Random(7)) if "k" in said]
        return max(with_lists[:20], key=lambda id: len(self.offers.top(id)))


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> Iterator[Shown]:
    settings = Settings(tmp_path_factory.mktemp("looks") / "data", open=True, allow=("127.0.0.1",))
    refusing = Receiver(answer=lambda message: (400, {}))
    with serving(settings) as client, connect(str(client.base_url)) as service, receiving(refusing):
        found = Shown(str(client.base_url).rstrip("/"), *demo.prepared(service))
        found.publish(80)
        client.post("/topics/offers/flush")
        client.post("/keys", json={"scopes": ["read"], "name": "a reader's page"})
        people = [id for id, _ in demo.people(random.Random(7))]
        sink = {"kind": "cloudevents", "url": refusing.url}
        client.put("/topics/offers/sinks/shop", json={**sink, "subscription": people[0]})
        client.post("/topics/offers/events", json=told_to(client, people[0]))
        yield found


def told_to(client: Any, id: str) -> dict[str, Any]:
    """An event of which this subscription hears."""
    clause = client.get(f"/topics/offers/subscriptions/{id}").json()
    west, south, east, north = map(float, clause["filter"].split("BBOX(")[1].split(")")[0].split(","))
    good = clause["filter"].split("('")[1].split("'")[0]
    return {"id": "refused", "price": 1, "place": [(west + east) / 2, (south + north) / 2], "about": good}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_room_fits_and_can_be_used_by_everybody(browser, shown, tmp_path_factory, width, scheme):
    folder = tmp_path_factory.getbasetemp() / "screenshots"
    folder.mkdir(exist_ok=True)
    with looking(browser, shown.url, width=width, scheme=scheme) as page:
        for room, topic in ROOMS.items():
            with heard(page, *STREAMS[room]):
                open_room(page, shown.url, room if room != "subscriptions" else f"{room}?id={shown.busiest}", topic)
            ACTS[room](page, shown)
            page.screenshot(path=folder / f"{room}-{width}-{scheme}.png", full_page=True)
            assert not sticks_out(page), room
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == GROUND[scheme]
            found = Axe().run(page).response["violations"]
            serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in SERIOUS]
            assert not serious, f"{room}: {serious}"


def live(page: Page, shown: Shown) -> None:
    for _ in range(6):
        shown.publish(3)
        page.wait_for_timeout(400)
    page.get_by_role("table", name="Newest notifications").wait_for()


def subscriptions(page: Page, shown: Shown) -> None:
    expect(page.locator("#check")).to_contain_text("Accepted: one clause on about, place, price")
    expect(page.locator("#preview")).to_contain_text("live events")


def explain(page: Page, shown: Shown) -> None:
    shown.publish(1)
    expect(page.get_by_label("Event, JSON")).not_to_have_value("")
    page.get_by_label("Subscription").fill(shown.busiest)
    page.get_by_role("button", name="Explain", exact=True).click()
    page.locator(".verdict").wait_for()


def boards(page: Page, shown: Shown) -> None:
    shown.publish(2)
    expect(page.locator("#painted")).to_contain_text("message")


def engine(page: Page, shown: Shown) -> None:
    page.get_by_role("button", name="Time them now").click()
    page.get_by_role("table", name="Slowest filters").get_by_role("button").first.wait_for()
    page.get_by_role("table", name="Dead letters").get_by_role("button").first.wait_for()


ACTS = {"live": live, "subscriptions": subscriptions, "explain": explain, "boards": boards, "engine": engine}
