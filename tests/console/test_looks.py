"""How the console looks, wide and narrow, light and dark: nothing sticks out, and axe-core finds no serious violation.

The screenshots stay in the test run's folder (`pytest --basetemp` says where).
"""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.console.browsing import looking, open_room

pytestmark = pytest.mark.browser
ROOMS = {"live": "offers", "subscriptions?id=ann": "offers", "explain": "offers", "boards": "stock", "engine": "offers"}
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_room_fits_and_can_be_used_by_everybody(browser, service, url, tmp_path_factory, width, scheme):
    folder = tmp_path_factory.getbasetemp() / "screenshots"
    folder.mkdir(exist_ok=True)
    with looking(browser, url, width=width, scheme=scheme) as page:
        for room, topic in ROOMS.items():
            open_room(page, url, room, topic)
            page.wait_for_timeout(400)
            offer = {"id": f"{room}-{width}-{scheme}", "price": 5, "brand": "Alba", "place": [8.5, 47.4], "about": "new lamp"}
            service.post("/topics/offers/events", json=offer)
            service.post("/topics/stock/events", json={"sku": "s05", "size": 35, "price": 2 + len(offer["id"]) % 5})
            if room == "explain":
                page.get_by_label("Event, JSON").fill('{"id": "y", "price": 5, "brand": "Alba"}')
                page.get_by_label("Subscription").fill("bob")
                page.get_by_role("button", name="Explain", exact=True).click()
                page.locator(".verdict").wait_for()
            page.wait_for_timeout(600)
            name = room.split("?")[0]
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} sticks out"
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 23)"
            assert dark == (scheme == "dark")
            found = Axe().run(page).response["violations"]
            serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in SERIOUS]
            assert not serious, f"{name}: {serious}"
