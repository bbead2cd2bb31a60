"""`tidings submit` on a cluster that has Python and Spark but no tidings: the environment is packed, sent, and used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidings as td
from tests.spark.cluster.standalone import cluster
from tests.spark.samples import EVENTS, SCHEMA, START, rows_of, subscriptions

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

JOB = """
[topic]
path = "{folder}/topic"
[events]
format = "parquet"
options = {{ path = "{folder}/events" }}
[answer]
kind = "match"
[sink]
format = "parquet"
options = {{ path = "{folder}/sink" }}
[run]
checkpoint = "{folder}/checkpoint"
report = "{folder}/report.html"
[run.settings]
"spark.sql.shuffle.partitions" = "2"
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.executor.memory" = "700m"
"""


def test_a_job_is_submitted_with_its_environment(tmp_path):
    with td.open(tmp_path / "topic", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60, windows=False), time=START)
        topic.flush()
        want = rows_of(topic.match_batch(EVENTS))
    (tmp_path / "events").mkdir()
    pq.write_table(EVENTS, tmp_path / "events" / "0.parquet")
    (tmp_path / "job.toml").write_text(JOB.format(folder=tmp_path))
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    # The workers find `python3` by their path, as on any cluster.
    bare["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), bare["PATH"]])
    with cluster(tmp_path, workers=2, environment=bare) as spark:
        program = [sys.executable, "-c", "from tidings.cli import main; main()", "submit", str(tmp_path / "job.toml")]
        driver = {**bare, "PYTHONPATH": str(Path("src").absolute()), "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [*program, "--master", spark.master, "--folder", str(tmp_path / "build"), "--no-kernels"]
        done = subprocess.run(command, env=driver, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert rows_of(pa.concat_tables([pq.read_table(path) for path in (tmp_path / "sink").glob("*.parquet")])) == want
    unpacked = [path for number in range(2) for path in (tmp_path / f"worker{number}").glob("app-*/*/environment/tidings/spark")]
    assert unpacked, "the executors had the archive"
    (archive,) = (tmp_path / "build").iterdir()
    kept = [path for path in Path("/tmp", archive.name.split(".")[0]).glob("*/*") if path.is_dir()]
    assert kept, "kernels are kept by the hash of the sources"
    assert not any(path.name.startswith("index_") for path in kept), "and by no path of an executor"
