"""Chromium's own EventSource as a client: it hears, and after the service was killed it comes back by itself and misses nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.serve.conftest import DEALS
from tests.serve.receiving import Receiver, receiving
from tests.serve.running import Running

pytestmark = pytest.mark.browser
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
PAGE = """<!doctype html><script>
const heard = new EventSource("{stream}");
heard.addEventListener("notification", (said) => fetch("{receiver}", {{method: "POST", mode: "no-cors", body: said.data}}));
heard.onopen = () => fetch("{receiver}", {{method: "POST", mode: "no-cors", body: '{{"open": true}}'}});
</script>"""
"""The page is a file and may read other origins here, as `--disable-web-security` says: what is tested is the stream."""


def browsing(folder: Path, page: Path) -> subprocess.Popen[bytes]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, "no Chromium is on the PATH: apt-get install chromium"
    flags = [*FLAGS, "--disable-web-security", f"--user-data-dir={folder / 'profile'}"]
    return subprocess.Popen([browser, *flags, page.as_uri()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ids(receiver: Receiver) -> list[str]:
    return [message.json["event"]["id"] for message in receiver.taken if "event" in message.json]


def test_an_event_source_comes_back_and_misses_nothing(tmp_path):
    with receiving() as receiver, Running(tmp_path / "data") as service:
        service.client.put("/topics/deals", json=DEALS)
        service.client.put("/topics/deals/subscriptions/ann", json={})
        page = tmp_path / "page.html"
        stream = f"{service.url}/topics/deals/notifications?subscription=ann"
        page.write_text(PAGE.format(stream=stream, receiver=receiver.url))
        browser = browsing(tmp_path, page)
        try:
            receiver.wait(1, 120)
            for name in ("a", "b"):
                service.client.post("/topics/deals/events", json={"id": name})
            receiver.wait(3, 60)
            service.kill()
            service.start()
            service.client.post("/topics/deals/events", json={"id": "c"})
            receiver.wait(5, 120)
            service.client.post("/topics/deals/events", json={"id": "d"})
            receiver.wait(6, 60)
            assert sorted(ids(receiver)) == ["a", "b", "c", "d"]
        finally:
            browser.kill()
            browser.wait()
