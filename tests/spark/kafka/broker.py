"""A real single-node Kafka (KRaft) on loopback, from Maven Central's jars."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.connectors.jars import fetch


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Its address, while it runs."""
    classpath = ":".join(map(str, fetch("broker")))
    port, controller = free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(settings(folder / "log", port, controller))
    java = ["java", "-Xmx512m", "-cp", classpath]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)], check=True, capture_output=True
    )
    with (folder / "broker.out").open("w") as out:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=out, stderr=out)
        try:
            wait_for(port, process, folder / "broker.out")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


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
