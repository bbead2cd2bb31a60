"""Offers still come to what the pipeline left, and the console shows them: `make live` and `tidings serve --demo`, as processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import tidings as td
from demo import offers
from demo.live import FEW, batches
from tests.serve.conftest import serving
from tidings.client.connecting import connect
from tidings.serve.settings import Settings

SCHEMA = {"price": td.Number(), "brand": td.Category(), "place": td.Place(), "about": td.Words(tokenizer="as-is")}
LIVE, DEMO = ("-m", "demo.live"), ("-m", "tidings", "serve", "--demo")
INTERRUPTED = 128 + signal.SIGINT


@pytest.fixture
def left(tmp_path, monkeypatch) -> Path:
    """A folder as the pipeline leaves it, but small."""
    monkeypatch.setattr(offers, "EVENTS", 120)
    place, weight = offers.places()
    with td.open(tmp_path / "served" / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(offers.subscriptions(np.random.default_rng(1), place, weight, 500, "s"))
        topic.subscribe("all", None)
    return tmp_path / "served"


@contextmanager
def shown(folder: Path, *command: str) -> Iterator[str]:
    """The address that a command prints; Ctrl-C ends it, without a complaint."""
    with open(folder / "complaints", "w+") as complaints:
        process = subprocess.Popen(
            [sys.executable, *command, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            # Whoever is started in the background ignores Ctrl-C, and what he starts too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if line.startswith("the console is at ")), "")
            assert said, (folder / "complaints").read_text()
            yield said.split()[4].rstrip("/;")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert process.returncode == INTERRUPTED
    assert (folder / "complaints").read_text() == ""


def test_offers_find_those_who_wait_in_the_folder_that_is_served(left):
    with serving(Settings(left, open=True)) as client, connect(str(client.base_url)) as service:
        posted = [service["offers"].post(some) for some in islice(batches(), 12)]
    assert sum(one.events for one in posted) == 12 * FEW, "every id is new"
    assert sum(one.told for one in posted) >= 12 * FEW


def test_without_what_the_pipeline_leaves_it_says_what_to_run(tmp_path):
    done = subprocess.run([sys.executable, *LIVE, "--folder", str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "there is nothing to serve yet: run 'make demo' first\n")


@pytest.mark.browser
@pytest.mark.parametrize("command", ["make live", "serve --demo"])
def test_the_console_shows_events_that_keep_coming(browser, left, tmp_path, command):
    from playwright.sync_api import expect

    from tests.browsing import PATIENCE, looking

    expect.set_options(timeout=PATIENCE)

    begun = shown(tmp_path, *LIVE, "--folder", str(left)) if command == "make live" else shown(tmp_path, *DEMO)
    with begun as url, looking(browser, url) as page:
        page.goto(url)
        newest = page.get_by_role("table", name="Newest notifications").get_by_role("rowheader").first
        event = page.get_by_role("table", name="Newest notifications").get_by_role("cell").first
        newest.wait_for()
        expect(event).not_to_have_text(event.inner_text())
