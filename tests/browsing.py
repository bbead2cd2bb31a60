"""A real Chromium: pictures of a page and its document, wide and narrow, light and dark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--virtual-time-budget=2000",
]
DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")


def browse(folder: Path, width: int, dark: bool, act: str, page: Path, height: int = 5000) -> str:
    """What the browser says of `page` when asked for `act` (`--dump-dom`, `--screenshot=...`); its profile stays in `folder`."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, "no Chromium is on the PATH: apt-get install chromium"
    profile = f"--user-data-dir={folder / act[2:8]}"
    flags = [*FLAGS, profile, f"--window-size={width},{height}", *(DARK if dark else ())]
    done = subprocess.run([browser, *flags, act, page.as_uri()], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
