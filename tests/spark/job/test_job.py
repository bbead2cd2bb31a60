"""Jobs: read from TOML, run on a real local Spark, with changes, refused events and a report."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import tidings as td
from tests.spark.samples import EVENTS, SCHEMA, SPARK, rows_of, subscriptions
from tidings.spark.job import runner, submit
from tidings.spark.job.job_file import JobError, job_of, load_job, set_value

pytestmark = pytest.mark.xdist_group("spark")


def spec(folder: Path) -> dict:
    return {
        "topic": {"path": str(folder / "topic"), "name": "offers", "schema": SCHEMA.to_dict()},
        "subscriptions": {"format": "parquet", "options": {"path": str(folder / "subscriptions.parquet")}},
        "changes": {"format": "parquet", "options": {"path": str(folder / "changes")}},
        "events": {"format": "parquet", "options": {"path": str(folder / "events"), "maxFilesPerTrigger": 1}},
        "sink": {"format": "parquet", "options": {"path": str(folder / "notes")}},
        "refused": {"format": "json", "options": {"path": str(folder / "refused")}},
        "run": {"checkpoint": str(folder / "checkpoint"), "report": str(folder / "report.html")},
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"events": None}, r"\[events\] is missing"),
        ({"sources": {}}, r"\[sources\] is unknown"),
        ({"run": {}}, r"\[run\] needs checkpoint"),
        ({"run": {"checkpoint": "c", "often": 1}}, r"run\.often is unknown: \[run\] has checkpoint, trigger"),
        ({"answer": {"kind": "tell"}}, "answer.kind is 'tell': 'notify' or 'match'"),
        ({"sink": "parquet"}, "sink is 'parquet': a table"),
        ({"sink": {"format": 5}}, r"sink\.format is 5: a text"),
        ({"sink": {"format": "json", "options": "path"}}, r"sink\.options is 'path': a table"),
        ({"answer": {"k": True}}, r"answer\.k is True: a whole number"),
        ({"answer": {"relaxed": 1}}, r"answer\.relaxed is 1: true or false"),
        ({"run": {"checkpoint": "c", "settings": [1]}}, r"run\.settings is \[1\]: a table"),
    ],
)
def test_a_job_with_a_mistake_is_refused(tmp_path, change, sentence):
    given = {name: part for name, part in {**spec(tmp_path), **change}.items() if part is not None}
    with pytest.raises(JobError, match=sentence):
        job_of(given)


def test_set_changes_a_field(tmp_path):
    given = spec(tmp_path)
    set_value(given, "run.trigger=real-time 7 seconds")
    set_value(given, "answer.shards=5")
    set_value(given, "events.options.maxFilesPerTrigger=3")
    job = job_of(given)
    assert job.trigger == {"realTime": "7 seconds"}
    assert job.answer.shards == 5
    assert job.events.options["maxFilesPerTrigger"] == "3"
    with pytest.raises(JobError, match=r"table\.key=value is accepted"):
        set_value(given, "trigger")
    with pytest.raises(JobError, match="cannot read"):
        load_job(tmp_path / "nothing.toml")


@pytest.mark.parametrize("raw", [b"\xff", b"[topic", b"topic = 1\ntopic = 2", b"a = " + b"[" * 5000])
def test_what_is_no_toml_is_refused(tmp_path, raw):
    (tmp_path / "job.toml").write_bytes(raw)
    with pytest.raises(JobError, match="is not TOML"):
        load_job(tmp_path / "job.toml")


def test_set_enters_tables_alone(tmp_path):
    (tmp_path / "job.toml").write_text("topic = 3")
    with pytest.raises(JobError, match=r"--set 'topic\.path=x': topic is 3, which is no table"):
        load_job(tmp_path / "job.toml", ["topic.path=x"])


@pytest.mark.parametrize("name", ["demo/job.toml"])
def test_the_demo_is_a_job(name):
    assert load_job(Path(name)).topic.name == "offers"


class TestRun:
    pytestmark = SPARK

    def test_a_job_builds_follows_notifies_and_reports(self, spark, tmp_path):
        pq.write_table(subscriptions(100), tmp_path / "subscriptions.parquet")
        for name, table in {"events": EVENTS.slice(0, 60), "changes": changes()}.items():
            (tmp_path / name).mkdir()
            pq.write_table(table, tmp_path / name / "0.parquet")
        bad = EVENTS.slice(0, 1).set_column(1, "price", pa.array([float("nan")])).set_column(0, "id", pa.array(["bad"]))
        pq.write_table(bad, tmp_path / "events" / "1.parquet")
        out = io.StringIO()
        progress = runner.run(job_of(spec(tmp_path)), "local[2]", Console(file=out))
        assert sum(batch.refused for batch in progress.all) == 1
        assert sum(batch.events for batch in progress.all) == 61
        assert [row["event"] for row in spark.read.json(str(tmp_path / "refused")).collect()] == ["bad"]
        got = rows_of(spark.read.parquet(str(tmp_path / "notes")))
        assert sum(batch.notifications for batch in progress.all) == len(got) > 0
        page = (tmp_path / "report.html").read_text()
        assert page.count("<svg") == 4
        assert f"<td>{len(got):,}</td>" in page
        assert "built" in out.getvalue()
        with td.open(tmp_path / "topic") as topic:
            assert len(topic) == 100

    def test_a_dry_run_shows_what_would_be(self, spark, tmp_path, capsys):
        pq.write_table(subscriptions(20), tmp_path / "subscriptions.parquet")
        (tmp_path / "events").mkdir()
        pq.write_table(EVENTS.slice(0, 30), tmp_path / "events" / "0.parquet")
        out = io.StringIO()
        runner.dry_run(job_of(spec(tmp_path)), "local[2]", Console(file=out, width=200))
        assert "a sample of 30 events gives" in out.getvalue()
        assert "why:string" in out.getvalue()
        assert not (tmp_path / "notes").exists()


def changes() -> pa.Table:
    return pa.table({"id": ["s1", "new", "s2"], "op": ["delete", "upsert", None], "price.hi": [None, 50.0, 10.0]})


def test_the_packed_environment_has_what_a_worker_imports(tmp_path):
    needed = {distribution.name.lower() for distribution in submit.closure("tidings")}
    assert {"numpy", "numba", "llvmlite", "pyarrow", "cql2", "shapely"} <= needed
    assert not {"pyspark", "py4j", "pytest"} & needed
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        submit.add_files(tar, next(d for d in submit.closure("tidings") if d.name.lower() == "cql2"))
        assert any(name.startswith("cql2/") for name in tar.getnames())
    command = submit.command(Path("job.toml"), "spark://h:1", ["run.trigger=1 second"], "a:b:1", tmp_path / "tidings-0.tar.gz")
    assert command[1:3] == ["--master", "spark://h:1"]
    assert command[-3:] == ["spark://h:1", "--set", "run.trigger=1 second"]
