"""Peers on Spark, beside `tidings.spark` in the same minutes: a join by ranges in Spark SQL and Apache Sedona's beside `match`, and
the ten best of each by a window function in Spark SQL beside `notify`.

Sedona's newest release on Maven Central is for Spark 4.0, so it runs on that, which is brought from PyPI into build/peers.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tidings as td
from benchmarks.peers.jvm import BUILT, HERE
from benchmarks.peers.peer import Measured, Task, Unavailable, told

SPARK_4_0 = "pyspark==4.0.1"


class OnSpark:
    """Its `ours` is what tidings costs on Spark."""

    def __init__(self, name: str, way: str) -> None:
        self.name, self.version, self._way = name, "", way

    def ours(self, task: Task) -> Measured:
        with folder_of(task) as folder:
            return self._asked(folder, task, "tidings best" if self._way.endswith("best") else "tidings")

    def measure(self, task: Task) -> Measured:
        with folder_of(task) as folder:
            return self._asked(folder, task, self._way)

    def _asked(self, folder: Path, task: Task, way: str) -> Measured:
        paths, jar = [str(HERE.parent.parent), str(HERE.parent.parent / "src")], []
        if way == "sedona":
            paths, jar = [str(older_spark()), *paths], [sedona()]
        command = [sys.executable, "-m", "benchmarks.peers.spark_child", way, str(folder), str(task.few), *jar]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
        environment.pop("SPARK_HOME", None)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"it ended with: {(done.stderr.strip().splitlines() or ['nothing said'])[-1][:200]}")
        said = json.loads(done.stdout.splitlines()[-1])
        if way == self._way:
            self.version = f"{'1.8.0 on ' if way == 'sedona' else ''}Spark {said['version']}"
        return Measured(said["answers"], said["batch"], math.nan)


@contextmanager
def folder_of(task: Task) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder, sides = Path(name), task.corners().T
        corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), sides, strict=True))
        pq.write_table(pa.table({"row": np.arange(task.subscriptions), **corners}), folder / "subscriptions.parquet")
        x, y = task.workload.events["place"].combine_chunks().flatten()
        worth = np.random.default_rng(4).permutation(len(x)).astype(np.float64)
        pq.write_table(pa.table({"row": np.arange(len(x)), "x": x, "y": y, "worth": worth}), folder / "events.parquet")
        with td.open(folder / "topic", "boxes", {**task.workload.schema, "worth": td.Number()}) as topic:
            n, subscriptions = task.subscriptions, task.workload.subscriptions
            columns = {"id": [f"s{row}" for row in range(n)], "place.box": subscriptions["place.box"]}
            ranked = {"k": [10] * n, "by": ["worth"] * n, "window": ["1000 days"] * n}
            topic.subscribe_many(pa.table(columns | (ranked if task.label.startswith("ten best") else {})), time=0)
        yield folder


def older_spark() -> Path:
    folder = BUILT / "spark-4.0"
    if not (folder / "pyspark").is_dir():
        with told(f"{SPARK_4_0} from PyPI"):
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), SPARK_4_0]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                raise Unavailable(f"{SPARK_4_0} cannot be had")
    return folder


def sedona() -> str:
    jars = BUILT / "sedona"
    if not any(jars.glob("*.jar")):
        with told("Sedona from Maven Central"):
            fetch = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "-Psedona", "dependency:copy-dependencies"]
            try:
                done = subprocess.run(
                    [*fetch, f"-DoutputDirectory={jars}", "-DincludeGroupIds=org.apache.sedona"],
                    capture_output=True,
                    text=True,
                    check=False,
                )
            except FileNotFoundError as error:
                raise Unavailable("there is no 'mvn'") from error
        if done.returncode:
            raise Unavailable("Maven Central cannot be reached")
    return str(next(jars.glob("sedona-spark-shaded*.jar")))


def range_join() -> OnSpark:
    return OnSpark("Spark SQL range join", "sql")


def top_n() -> OnSpark:
    return OnSpark("Spark SQL Top-N", "sql best")


def sedona_join() -> OnSpark:
    return OnSpark("Apache Sedona", "sedona")
