"""A real S3 server on loopback: versitygw over a folder, built by Go, each folder in it a bucket."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.ports import free_port

VERSITY = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
KEYS = {"AWS_ACCESS_KEY_ID": "tidings", "AWS_SECRET_ACCESS_KEY": "tidings-secret"}
BUILT = Path(__file__).resolve().parents[3] / "build" / "versitygw"


def versitygw() -> Path:
    """The server: TIDINGS_VERSITYGW, one on the PATH, or built once into build/ (about two minutes)."""
    given = os.environ.get("TIDINGS_VERSITYGW") or shutil.which("versitygw")
    if given:
        return Path(given)
    if not BUILT.exists():
        BUILT.parent.mkdir(exist_ok=True)
        subprocess.run(["go", "install", VERSITY], env={**os.environ, "GOBIN": str(BUILT.parent)}, check=True)
    return BUILT


class S3Server:
    """`stop` and `start` at will: it comes back on its port with what it had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bucket").mkdir(parents=True)
        self.port = free_port()
        self.start()

    @property
    def environment(self) -> dict[str, str]:
        """What obstore reads."""
        where = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        return {**KEYS, **where}

    def start(self) -> None:
        keys = ["--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"]]
        command = [str(versitygw()), *keys, "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", str(self.folder)]
        with (self.folder.parent / "s3.log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(200):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"versitygw did not answer on port {self.port}: see {self.folder.parent / 's3.log'}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
