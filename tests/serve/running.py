"""A real service in a process of its own, on a free port of loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import httpx

ROOT = Path(__file__).parents[2]


class Running:
    """`with Running(folder) as service: service.client.get("/topics")`."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, key: str | None = None, access: Sequence[str] = ("--open",)
    ) -> None:
        self.folder, self.port, self.key = folder, port, key
        self.options = [*access, *options]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Running:
        command = [sys.executable, "-m", "tidings", "serve", str(self.folder), "--port", str(self.port), *self.options]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        self.log = open(self.folder.parent / f"{self.folder.name}.log", "a")  # noqa: SIM115 - closed in stop
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment, cwd=ROOT)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "not shown again" in line:
                self.key = line.split()[-1]
            if "http://" in line:
                self.url = line.split("http://")[1].split()[0]
                break
        self.url = f"http://{self.url}"
        self.port = int(self.url.rsplit(":", 1)[1])
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=60)
        self.wait()
        return self

    def wait(self) -> None:
        """Until every topic is open."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError("the service did not get ready")

    def kill(self) -> None:
        assert self.process is not None
        self.client.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()

    def stop(self) -> int:
        """Ask it to stop; its status."""
        assert self.process is not None
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        return status

    def __enter__(self) -> Running:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.stop()
