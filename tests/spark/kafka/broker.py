"""A real single-node Kafka (KRaft) on loopback, from Maven Central's jars."""

from __future__ import annotations

import atexit
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp

from tests.ports import free_port
from tests.spark.connectors.jars import fetch


def java() -> list[str]:
    return ["java", "-Xmx512m", "-cp", ":".join(map(str, fetch("broker")))]


@cache
def formatted() -> Path:
    """A log folder as Kafka's own tool makes it: once a process, brokers begin with copies."""
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    properties = folder / "server.properties"
    properties.write_text(settings(folder / "log", free_port(), free_port()))
    # A leading hyphen would be an option of the tool.
    cluster = "A" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
    form = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    subprocess.run([*java(), *form], check=True, capture_output=True)
    return folder / "log"


class Broker:
    """`stop` and `start` at will: it comes back on its port with what it had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, controller = free_port(), free_port()
        self._properties = folder / "server.properties"
        self._properties.write_text(settings(folder / "log", self.port, controller))
        copytree(formatted(), folder / "log")
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        log = self.folder / "broker.out"
        with log.open("a") as out:
            self.process = subprocess.Popen([*java(), "kafka.Kafka", str(self._properties)], stdout=out, stderr=out)
        try:
            wait_for(self.port, self.process, log)
        except RuntimeError:
            self.stop()
            raise

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(120)


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Its address, while it runs."""
    made = Broker(folder)
    try:
        yield made.address
    finally:
        made.stop()


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the broker stopped: {log.read_text()[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError("the broker did not start")


def settings(folder: Path, port: int, controller: int) -> str:
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
