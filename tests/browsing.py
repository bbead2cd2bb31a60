"""A real Chromium, and pages in it whose every mistake fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PATIENCE = 90_000
"""Milliseconds for what should take far less: a busy machine is not a failure."""


def executable() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found is not None, "no Chromium is on the PATH: apt-get install chromium"
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def looking(browser: Browser, *addresses: str, width: int = 1280, height: int = 900, scheme: str = "light") -> Iterator[Page]:
    """A page; what it asks of other addresses than these, and each of its mistakes, fails the test."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(addresses) else mistakes.append(f"asked {asked.url}"))
    page.on("console", lambda said: mistakes.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert not mistakes, mistakes


def sticks_out(page: Page) -> bool:
    """Whether something of the page is to the right of the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))
