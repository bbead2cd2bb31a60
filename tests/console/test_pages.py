"""The page's files: what a browser may do with them, what is not there, and lines for the map."""

from __future__ import annotations

import json
import re

import pytest

from tests.serve.conftest import serving
from tidings.console.coasts import Bounds, written_lines
from tidings.console.pages import FOLDER, origin_of
from tidings.errors import TidingsError
from tidings.serve.settings import Settings


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    tiles = "https://tiles.example.org/{z}/{x}/{y}.png"
    with serving(Settings(tmp_path_factory.mktemp("console") / "data", tiles=tiles)) as client:
        yield client


def test_the_page_needs_no_key_and_lets_in_nothing_from_elsewhere_but_tiles(client):
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "img-src 'self' https://tiles.example.org;" in policy
    assert "unsafe" not in policy
    assert client.get("/console/settings").json() == {"open": False, "tiles": "https://tiles.example.org/{z}/{x}/{y}.png"}
    assert client.get("/topics").status_code == 401


def test_a_file_that_is_known_is_not_sent_again(client):
    first = client.get("/console/console.js")
    again = client.get("/console/console.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for name in ("nothing.js", "..%2Fpages.py", "__init__.py"):
        assert client.get(f"/console/{name}").status_code == 404


def test_files_name_only_each_other():
    for path in FOLDER.iterdir():
        said = path.read_text()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", said), path.name
        assert "innerHTML" not in said
        assert "insertAdjacentHTML" not in said
        for name in re.findall(r'from "\./([\w.]+)"', said):
            assert (FOLDER / name).is_file(), f"{path.name} imports {name}"


def test_lines_are_as_fine_as_the_map_can_show(client):
    near = json.loads(written_lines(Bounds(5.9, 45.8, 10.5, 47.8)))
    world = json.loads(written_lines(Bounds(-180, -90, 180, 90)))
    assert near["coasts"], "shores of lakes"
    assert near["borders"]
    assert len(json.dumps(world)) < 1_000_000
    asked = client.get("/console/land", params={"west": 5.9, "south": 45.8, "east": 10.5, "north": 47.8})
    assert asked.json() == near
    assert client.get("/console/land?west=a").status_code == 422


@pytest.mark.parametrize("tiles", ["tiles", "https://a.org/{z}/{x}.png", "ftp://a.org/{z}/{x}/{y}", "https://a.org;x/{z}/{x}/{y}"])
def test_an_address_of_tiles_that_is_none_is_refused(tiles):
    with pytest.raises(TidingsError, match="an address as"):
        origin_of(tiles)
