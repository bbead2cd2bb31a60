"""A Chromium with one page and nobody at it: asked by its protocol over a pipe.

Playwright keeps what a page fetched and has scripts of its own in it, which would be counted as the page's memory.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browsing import FLAGS, executable

FREE = 10
"""A descriptor above the two, 3 and 4, by which the browser reads and writes."""


class Bare:
    """`with Bare(folder, url) as page: page.send("Runtime.evaluate", {...})`; its profile is in the folder."""

    def __init__(self, folder: Path, url: str) -> None:
        reads, self._out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FREE) for end in os.pipe())
        into, writes = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FREE) for end in os.pipe())

        def given() -> None:
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        command = [
            executable(),
            *FLAGS,
            "--headless",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "--window-size=1280,900",
        ]
        log = subprocess.DEVNULL
        self.process = subprocess.Popen(command, preexec_fn=given, pass_fds=(3, 4), stdout=log, stderr=log)
        os.close(reads)
        os.close(writes)
        self._in = open(into, "rb")  # noqa: SIM115 - closed at the end
        self._rest = b""
        self._numbers = itertools.count(1)
        self._heard: dict[str, Callable[[Any], object]] = {}
        self._session: dict[str, str] = {}
        self._loaded: list[Any] = []
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = {"sessionId": self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]}
        self.send("Page.enable")
        self.on("Page.loadEventFired", lambda told: self._loaded.append(told))
        self.send("Page.navigate", {"url": url})
        while not self._loaded:
            self._hear(self._next())
        self.version = str(self.send("Browser.getVersion")["product"])

    def on(self, event: str, heard: Callable[[Any], object]) -> None:
        self._heard[event] = heard

    def send(self, method: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer; what is said meanwhile is given to who hears it."""
        number = next(self._numbers)
        os.write(self._out, json.dumps({"id": number, "method": method, "params": given or {}, **self._session}).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == number:
                assert "error" not in said, said
                return dict(said["result"])
            self._hear(said)

    def _hear(self, said: dict[str, Any]) -> None:
        if said.get("method") in self._heard:
            self._heard[said["method"]](said["params"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._in.read1(1 << 20)
            assert more, "the browser is gone"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(text))

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *raised: object) -> None:
        os.close(self._out)
        self._in.close()
        self.process.terminate()
        self.process.wait(30)
