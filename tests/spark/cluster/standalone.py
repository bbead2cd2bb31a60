"""A standalone Spark cluster on loopback, from the PySpark package."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from tests.ports import free_port

HOME = Path(pyspark.__file__).parent


class Cluster:
    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        """`environment` is the workers'; without one they have this process's, this Python and these sources."""
        self.folder = folder
        self.port = free_port()
        self.master = f"spark://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        ours = {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(map(str, [Path("src").absolute(), Path().absolute()])),
        }
        given = {**os.environ, **ours} if environment is None else environment
        self.environment = {**given, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
        where = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self.start("master", "org.apache.spark.deploy.master.Master", *where)

    def start(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.out").open("ab") as out:
            command = [str(HOME / "bin" / "spark-class"), program, *arguments]
            process = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out)
        self.processes.append(process)
        return process

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        work = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(self.folder / name)]
        return self.start(name, "org.apache.spark.deploy.worker.Worker", *work, self.master)

    def driver(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "driver.out").open("ab") as out:
            command = [sys.executable, "-m", "tests.spark.cluster.driver", self.master, *arguments]
            process = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out)
        self.processes.append(process)
        return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and what it started, as a lost machine would."""
    for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


@contextmanager
def cluster(folder: Path, workers: int, environment: dict[str, str] | None = None) -> Iterator[Cluster]:
    made = Cluster(folder, environment)
    try:
        for number in range(workers):
            made.worker(f"worker{number}")
        yield made
    finally:
        for process in made.processes:
            if process.poll() is None:
                kill(process)


def wait_for(what: str, holds, process: subprocess.Popen[bytes], log: Path, seconds: float = 240) -> None:
    """Until `holds()`; the process must live."""
    end = time.monotonic() + seconds
    while not holds():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"waited in vain for {what}: {log.read_text()[-3000:]}")
        time.sleep(0.2)
