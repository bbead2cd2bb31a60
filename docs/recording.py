"""The console as it runs, recorded in a real Chromium: `docs/images/console-*.webp`, which `make docs` makes and git leaves out.

`tidings serve --demo` is started and looked at: Live and Boards as a moving picture, light and dark, and every room as a still.
Whoever asked for less motion is shown a still.
"""

from __future__ import annotations

import io
import random
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tests.browsing import chromium, looking
from tests.console.rooms import open_room, until
from tests.serve.running import Running
from tidings.console import demo

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1120, 720
PAUSE = 0.35
"""Seconds between frames."""
LIVE, BOARDS = 18, 12
"""Frames of each room."""
SCHEMES = ("light", "dark")
SOMEBODY = next(id for id, said in demo.people(random.Random(7)) if "k" in said)
STILLS = {"live": "offers", f"subscriptions?id={SOMEBODY}": "offers", "explain": "offers", "boards": "stock", "engine": "offers"}


def main(live: int = LIVE, boards: int = BOARDS) -> None:
    """With so many frames of each room."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Running(Path(folder) / "data", "--demo", access=()) as service,
        chromium() as browser,
    ):
        for scheme in SCHEMES:
            with looking(browser, service.url, "about:blank", width=WIDTH, height=HEIGHT, scheme=scheme) as page:
                open_room(page, service.url, "live")
                page.get_by_role("table", name="Newest notifications").get_by_role("row").nth(10).wait_for()
                moving = [*frames(page, live)]
                open_room(page, service.url, "boards", "stock")
                page.locator("#painted").filter(has_text="message").wait_for()
                moving += frames(page, boards)
                animate(moving, IMAGES / f"console-{scheme}.webp")
        with looking(browser, service.url, "about:blank", width=WIDTH, height=HEIGHT) as page:
            for room, topic in STILLS.items():
                open_room(page, service.url, room, topic)
                act(page, room)
                shot(page).save(IMAGES / f"console-{room.split('?')[0]}.webp", quality=80, method=6)


def act(page: Page, room: str) -> None:
    """What makes a still worth looking at."""
    if room == "live":
        page.get_by_role("table", name="Newest notifications").get_by_role("row").nth(10).wait_for()
        page.wait_for_timeout(4000)
    elif room.startswith("subscriptions"):
        page.locator("#check").filter(has_text="one clause").wait_for()
        page.locator("#preview").filter(has_text="live event").wait_for()
    elif room == "explain":
        page.get_by_label("Subscription").fill(SOMEBODY)
        until(page, page.get_by_label("Event, JSON").input_value)
        page.get_by_role("button", name="Explain", exact=True).click()
        page.locator(".verdict").wait_for()
    elif room == "boards":
        page.locator("#painted").filter(has_text="message").wait_for()
        page.wait_for_timeout(1500)
    else:
        page.get_by_role("button", name="Pack what is new").click()
        page.get_by_role("table", name="Homes").get_by_role("row").nth(1).wait_for()


def frames(page: Page, count: int) -> list[Image.Image]:
    began, found = time.monotonic(), []
    for number in range(count):
        page.wait_for_timeout(max(0.0, began + number * PAUSE - time.monotonic()) * 1000)
        found.append(shot(page))
    return found


def shot(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def animate(moving: list[Image.Image], path: Path) -> None:
    first, *rest = moving
    first.save(
        path, save_all=True, append_images=rest, duration=round(PAUSE * 1000), loop=0, quality=45, method=4, minimize_size=True
    )


if __name__ == "__main__":
    main()
