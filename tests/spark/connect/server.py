"""A real Spark Connect server on loopback, from the PySpark package."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.spark.cluster.standalone import HOME, kill
from tidings.spark.frames.session import SETTINGS

PROGRAM = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Its address, while it runs. The server's Python is this one, with these sources."""
    port = free_port()
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    here = os.pathsep.join(map(str, [Path("src").absolute(), Path().absolute()]))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": here, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(HOME / "bin" / "spark-submit"), "--master", "local[2]", *options, "--class", PROGRAM, "spark-internal"]
    log = folder / "connect.out"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=out)
    try:
        wait_for(port, process, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            kill(process)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"the Connect server did not start: {log.read_text()[-3000:]}")
