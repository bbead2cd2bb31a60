"""Five thousand events a second with the page open: it counts every one, draws a sample and says so, and leaves nothing behind."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.browsing import looking
from tests.console.heaps import Heap
from tests.console.load import Load, prepared
from tests.console.memory import ROOMS, begun, grown, run, store
from tests.console.rooms import heard, open_room, until

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
RATE, SECONDS = 5000, 4
TAKEN = """() => {
  const sampled = document.getElementById("sampled");
  window.taken = [];
  new MutationObserver(() => window.taken.push(sampled.textContent)).observe(sampled, { childList: true });
}"""
SAID = re.compile(r"Sampled: ([\d,]+) of the last ([\d,]+) events are drawn, each with the same chance\.")


def test_five_thousand_events_a_second_are_counted_sampled_and_said_so(browser, service, url, record_property):
    prepared(service, "load", 40)
    with looking(browser, url) as page:
        with heard(page, "/topics/load/flow"):
            open_room(page, url, "live", "load")
        page.evaluate(TAKEN)
        with Load(url, "load", RATE, SECONDS) as load:
            load.join()
        assert load.published == RATE * SECONDS
        until(page, lambda: sum(events for _, events in counted(page)) >= load.published)
        said = counted(page)
        page.get_by_role("table", name="Newest notifications").get_by_role("button", name="Explain").first.wait_for()
    record_property("published, late", (load.published, load.late))
    assert sum(events for _, events in said) == load.published, "every event is counted, once"
    assert all(0 < shown < events for shown, events in said)


def counted(page: Page) -> list[tuple[int, int]]:
    """How many were drawn, of how many, second by second."""
    said = filter(None, map(SAID.search, page.evaluate("window.taken")))
    return [(int(found[1].replace(",", "")), int(found[2].replace(",", ""))) for found in said]


def test_rooms_leave_nothing_behind(browser, service, url):
    with looking(browser, url) as page:
        open_room(page, url, "live", "offers")
        heap = Heap(page.context.new_cdp_session(page))
        first: dict[str, int] = {}
        for _ in range(4):
            for room in ROOMS:
                heap.run(f"location.hash = '#/{room}'")
                page.get_by_role("heading", level=1).filter(has_text=room.capitalize()).wait_for()
                page.wait_for_timeout(100)
            first = first or heap.counted()
        names = ("nodes", "listeners")
        until(page, lambda: all(now <= first[name] for name, now in heap.counted().items() if name in names))


@pytest.mark.soak
def test_twelve_minutes_do_not_grow_the_page():
    found = run(12)
    store(begun(), found)
    for name, most in {"heap": 0.1, "data": 0.02, "nodes": 0.0, "listeners": 0.0}.items():
        assert grown(found["samples"], name) <= most, name
