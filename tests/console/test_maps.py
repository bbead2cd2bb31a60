"""Polygons drawn on the map, and tiles of a server of the user's choice, in a real Chromium."""

from __future__ import annotations

import io
import math
import re
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import matplotlib.image
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browsing import PATIENCE, looking
from tests.console.conftest import OFFERS
from tests.console.rooms import middle_of, open_room, until
from tests.serve.conftest import serving
from tidings.serve.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=PATIENCE)
CORNERS = ((-80, -60), (90, -60), (-80, 70))
"""Pixels from the middle: a triangle, so that its box has room outside of it."""
RED, BLUE = (200, 30, 30), (30, 30, 200)
ZURICH = (8.54, 47.37)


@pytest.mark.parametrize("closed_by", ["Enter", "a double click", "its first corner"])
def test_a_polygon_is_drawn_and_what_is_outside_of_it_is_not_told(browser, service, url, closed_by):
    with looking(browser, url) as page:
        open_room(page, url, "subscriptions", "offers")
        name = f"drawn, closed by {closed_by}"
        page.get_by_label("Id", exact=True).fill(name)
        page.get_by_role("button", name="Draw a polygon").click()
        draw(page, closed_by)
        filter = page.get_by_label("Filter, CQL2")
        expect(filter).to_have_value(re.compile(r"^S_INTERSECTS\(place, POLYGON\(\("))
        expect(page.locator("#check")).to_contain_text("Accepted: one clause on place")
        expect(page.get_by_role("button", name="Move", exact=True)).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("button", name="Unsubscribe")).to_be_visible()
        ring = re.findall(r"(-?[\d.]+) (-?[\d.]+)", filter.input_value())
        (a, b, c), last = np.array(ring, float)[:3], np.array(ring, float)[-1]
        assert (last == a).all(), "it is closed"
        assert len(ring) == 4
    inside, outside = (a + b + c) / 3, b + c - a
    for place, told in ((inside, True), (outside - (outside - a) * 0.1, False)):
        matches = service.post("/topics/offers/match", json={"id": "x", "place": list(place)}).json()["matches"]
        assert (name in [match["subscription"] for match in matches]) == told


def draw(page: Page, closed_by: str) -> None:
    x, y = middle_of(page)
    for dx, dy in CORNERS[:-1]:
        page.mouse.click(x + dx, y + dy)
    dx, dy = CORNERS[-1]
    if closed_by == "a double click":
        page.mouse.dblclick(x + dx, y + dy)
        return
    page.mouse.click(x + dx, y + dy)
    if closed_by == "Enter":
        page.locator(".plot").focus()
        page.keyboard.press("Enter")
    else:
        page.mouse.click(x + CORNERS[0][0], y + CORNERS[0][1])


class Tiles:
    """What was asked of a server of tiles, and with which headers. The tile that holds Zurich is red, all others are blue."""

    def __init__(self) -> None:
        self.asked: dict[tuple[int, int, int], dict[str, str]] = {}
        self.url = ""


@contextmanager
def tile_server() -> Iterator[Tiles]:
    tiles = Tiles()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            z, x, y = map(int, re.findall(r"\d+", self.path))
            tiles.asked[z, x, y] = {name.lower(): value for name, value in self.headers.items()}
            body = png(RED if (x, y) == tile_of(*ZURICH, z) else BLUE)
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    tiles.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield tiles
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tile_of(longitude: float, latitude: float, z: int) -> tuple[int, int]:
    """The tile of a place, as all servers of tiles number them."""
    wide = 2**z
    north = math.asinh(math.tan(math.radians(latitude))) / math.pi
    return int((longitude + 180) / 360 * wide), int((1 - north) / 2 * wide)


def png(colour: tuple[int, int, int], size: int = 256) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = (b"\0" + bytes(colour) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_tiles_of_a_users_server_lie_where_they_belong_and_learn_nothing(browser, tmp_path):
    with tile_server() as tiles, serving(Settings(tmp_path / "data", open=True, tiles=tiles.url + "/{z}/{x}/{y}.png")) as client:
        client.put("/topics/offers", json=OFFERS)
        client.put("/topics/offers/subscriptions/zurich", json={"filter": f"S_INTERSECTS(place, POINT({ZURICH[0]} {ZURICH[1]}))"})
        address = str(client.base_url).rstrip("/")
        with looking(browser, address, tiles.url) as page:
            open_room(page, address, "subscriptions?id=zurich", "offers")
            expect(page.locator("#check")).to_contain_text("Accepted: one clause on place")
            until(page, lambda: np.allclose(near_the_middle(page), RED, atol=8))
    z = max(z for z, _, _ in tiles.asked)
    assert (z, *tile_of(*ZURICH, z)) in tiles.asked
    for headers in tiles.asked.values():
        assert not {"referer", "cookie", "authorization"} & set(headers)


def near_the_middle(page: Page) -> np.ndarray:
    """The colour some pixels beside the middle of the map, where the chosen place is."""
    pixels = matplotlib.image.imread(io.BytesIO(page.locator(".plot").screenshot()))
    height, width = pixels.shape[:2]
    return pixels[height // 2 + 9, width // 2, :3] * 255
