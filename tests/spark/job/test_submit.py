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

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("programs"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

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


def submitted(folder: Path, *options: str) -> Path:
    """Submit a job to a cluster whose workers know nothing of tidings; where its executors keep what they compile."""
    with td.open(folder / "topic", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(60, windows=False), time=START)
        topic.flush()
        want = rows_of(topic.match_batch(EVENTS))
    (folder / "events").mkdir()
    pq.write_table(EVENTS, folder / "events" / "0.parquet")
    (folder / "job.toml").write_text(JOB.format(folder=folder))
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON", "NUMBA_CACHE_DIR")}
    # The workers find `python3` by their path, as on any cluster.
    bare["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), bare["PATH"]])
    with cluster(folder, workers=2, environment=bare) as spark:
        program = [sys.executable, "-c", "from tidings.cli import main; main()", "submit", str(folder / "job.toml")]
        driver = {**os.environ, "PYTHONPATH": str(Path("src").absolute()), "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [*program, "--master", spark.master, "--folder", str(folder / "build"), *options]
        done = subprocess.run(command, env=driver, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert rows_of(pa.concat_tables([pq.read_table(path) for path in (folder / "sink").glob("*.parquet")])) == want
    unpacked = [path for number in range(2) for path in (folder / f"worker{number}").glob("app-*/*/environment/tidings/spark")]
    assert unpacked, "the executors had the archive"
    (archive,) = (folder / "build").glob("*.tar.gz")
    return Path("/tmp", archive.name.split(".")[0])


def test_a_job_is_submitted_with_its_environment(tmp_path):
    kept = [path for path in submitted(tmp_path, "--no-kernels").glob("*/*") if path.is_dir()]
    assert kept, "kernels are kept by the hash of the sources"
    assert not any(path.name.startswith("index_") for path in kept), "and by no path of an executor"


@pytest.mark.soak
def test_executors_compile_nothing_that_the_archive_carries(tmp_path):
    """Minutes: it compiles every kernel for a baseline CPU first, into the archive."""
    assert list(submitted(tmp_path).rglob("*.nb?")) == []
