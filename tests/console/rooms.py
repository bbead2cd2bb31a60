"""The console's rooms: opened, and acted in by the pointer."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from playwright.sync_api import Page

from tests.browsing import PATIENCE

Point = tuple[float, float]


def open_room(page: Page, url: str, room: str, topic: str | None = None) -> None:
    """A room of the console, of this topic, loaded anew: a change of the address alone would draw it at an instant of its own."""
    if topic is not None:
        page.add_init_script(f"if (origin !== 'null') sessionStorage.setItem('tidings-topic', {topic!r})")
    page.goto("about:blank")
    page.goto(f"{url}/#/{room}")
    page.get_by_role("heading", level=1).wait_for()


def middle_of(page: Page) -> Point:
    """Of the room's first map."""
    box = page.locator(".plot").first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Page, start: Point, end: Point) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    page.mouse.move(*end)
    page.mouse.up()


def heard(page: Page, *streams: str) -> ExitStack:
    """Within it, the page begins to hear these streams; after it, whatever is published is heard."""
    opening = ExitStack()
    for stream in streams:
        opening.enter_context(page.expect_response(lambda answer, stream=stream: stream in answer.url and answer.ok))
    return opening


def until(page: Page, holds: Callable[[], object]) -> None:
    """Look again and again, while the page goes on."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        page.wait_for_timeout(100)
