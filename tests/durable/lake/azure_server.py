"""A real Azure Blob server on loopback: azurite, from npm, with the account and key that every emulator has."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import shutil
import socket
import subprocess
import time
from contextlib import closing
from email.utils import formatdate
from pathlib import Path

from tests.ports import free_port

AZURITE = "azurite@3.35.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Published by Azure for its emulators; it opens nothing else."""
FOLDER = Path(__file__).resolve().parents[3] / "build" / "azurite"
VERSION = "2021-12-02"


def azurite() -> Path:
    """The server: TIDINGS_AZURITE, one on the PATH, or installed once into build/."""
    given = os.environ.get("TIDINGS_AZURITE") or shutil.which("azurite-blob")
    if given:
        return Path(given)
    program = FOLDER / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", AZURITE], cwd=FOLDER, check=True)
    return program


class AzureServer:
    def __init__(self, folder: Path, container: str) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        command = [str(azurite()), "--silent", "--location", str(folder), "--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        with (folder.parent / "azure.log").open("a") as log:
            self.process = subprocess.Popen([*command, "--skipApiVersionCheck", "--disableTelemetry"], stdout=log, stderr=log)
        for _ in range(300):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.1)
        self._make(container)

    @property
    def environment(self) -> dict[str, str]:
        return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{self.port}"}

    def _make(self, container: str) -> None:
        date = formatdate(usegmt=True)
        said = f"x-ms-date:{date}\nx-ms-version:{VERSION}"
        asked = "\n".join(["PUT", *[""] * 11, said, f"/{ACCOUNT}/{ACCOUNT}/{container}", "restype:container"])
        sign = base64.b64encode(hmac.new(base64.b64decode(KEY), asked.encode(), hashlib.sha256).digest()).decode()
        headers = {
            "x-ms-date": date,
            "x-ms-version": VERSION,
            "Authorization": f"SharedKey {ACCOUNT}:{sign}",
            "Content-Length": "0",
        }
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as asking:
            asking.request("PUT", f"/{ACCOUNT}/{container}?restype=container", headers=headers)
            answer = asking.getresponse()
            if answer.status != 201:
                raise RuntimeError(f"azurite made no container: {answer.status} {answer.read()[:200]!r}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
