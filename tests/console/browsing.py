"""A real Chromium that looks at the console of a service in this process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PATIENCE = 90_000
"""Milliseconds for what should take far less: a busy machine is not a failure."""


@contextmanager
def chromium() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found is not None, "no Chromium is on the PATH: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def looking(browser: Browser, url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Iterator[Page]:
    """A page whose every mistake, and every request to elsewhere, fails the test."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(url) else mistakes.append(f"asked {asked.url}"))
    page.on("console", lambda said: mistakes.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert not mistakes, mistakes


def open_room(page: Page, url: str, room: str, topic: str | None = None) -> None:
    """A room of the console, of this topic, loaded anew: a change of the address alone would draw it at an instant of its own."""
    if topic is not None:
        page.add_init_script(f"if (origin !== 'null') sessionStorage.setItem('tidings-topic', {topic!r})")
    page.goto("about:blank")
    page.goto(f"{url}/#/{room}")
    page.get_by_role("heading", level=1).wait_for()
