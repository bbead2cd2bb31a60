"""Jobs run on a real local Spark, with changes, refused events and a report; dry runs; edits of a job that has run."""

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
from tidings.spark.job.dry_run import dry_run
from tidings.spark.job.job_file import JobError
from tidings.spark.job.job_reading import job_of
from tidings.spark.job.topic_making import ensure_topic
from tidings.spark.job.warming import has_run, warm_up

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
        job = job_of(spec(tmp_path))
        assert not has_run(job)
        progress = runner.run(job, "local[2]", Console(file=out))
        assert has_run(job)
        assert sum(batch.refused for batch in progress.all) == 1
        assert sum(batch.events for batch in progress.all) == 61
        assert [row["event"] for row in spark.read.json(str(tmp_path / "refused")).collect()] == ["bad"]
        got = rows_of(spark.read.parquet(str(tmp_path / "notes")))
        assert sum(batch.notifications for batch in progress.all) == len(got) > 0
        page = (tmp_path / "report.html").read_text()
        assert f"<td>{len(got):,}</td>" in page
        assert all(heading in page for heading in ("Who heard what", "Where", "Once warm", "Warm-up", "pyspark 4"))
        assert "micro-batches" in out.getvalue()
        assert "[" not in page.split("<footer>")[1].replace("local[2]", "")
        out = io.StringIO()
        assert not runner.run(job, "local[2]", Console(file=out)).batches
        assert "nothing came that was not answered before" in out.getvalue()
        assert (tmp_path / "report.html").read_text() == page
        with td.open(tmp_path / "topic") as topic:
            assert len(topic) == 100

    def test_a_dry_run_writes_nothing_and_gives_reasons(self, spark, tmp_path):
        given(tmp_path)
        before = sorted(tmp_path.rglob("*"))
        out = io.StringIO()
        dry_run(job_of(spec(tmp_path)), "local[2]", Console(file=out, width=240))
        assert sorted(tmp_path.rglob("*")) == before
        said = out.getvalue()
        assert "a sample of 30 gives" in said
        assert "why:string" in said
        rows = [line for line in said.splitlines() if line.startswith("│")]
        assert len(rows) == 10
        assert all("wanted" in row or "has w" in row for row in rows)

    def test_edits_of_a_job_that_has_run_are_noticed(self, spark, tmp_path):
        given(tmp_path)
        job = spec(tmp_path)
        said: list[str] = []
        ensure_topic(spark, job_of(job), said.append)
        ensure_topic(spark, job_of(job), said.append)
        assert not said
        pq.write_table(subscriptions(21), tmp_path / "subscriptions.parquet")
        ensure_topic(spark, job_of(job), said.append)
        assert "have changed since" in said.pop()
        pq.write_table(subscriptions(20), tmp_path / "others.parquet")
        edited = {**job, "subscriptions": {"format": "parquet", "options": {"path": str(tmp_path / "others.parquet")}}}
        with pytest.raises(
            JobError, match=r"\[subscriptions\] has another options .* send what is new through \[changes\], or remove"
        ):
            ensure_topic(spark, job_of(edited), said.append)
        with pytest.raises(JobError, match=r"topic\.schema differs"):
            ensure_topic(spark, job_of({**job, "topic": {**job["topic"], "schema": {"price": "number"}}}), said.append)

    @pytest.mark.deep
    def test_a_warm_up_leaves_nothing_behind(self, spark, tmp_path):
        given(tmp_path)
        job = job_of(spec(tmp_path) | {"answer": {"shards": 2}})
        ensure_topic(spark, job, str)
        spark.conf.set("spark.sql.streaming.schemaInference", "true")
        before = {path for path in tmp_path.rglob("*") if path.is_file()}
        warm_up(spark, job)
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == before

    @pytest.mark.parametrize(
        ("table", "change", "sentence"),
        [
            ("sink", {"format": "postgres-cdc"}, r"\[sink\] with format 'postgres-cdc': Spark knows none; .* --packages"),
            ("events", {"format": "cassandra"}, r"\[events\] with format 'cassandra': Spark knows none; .* --packages"),
        ],
    )
    def test_what_spark_refuses_is_one_sentence(self, spark, tmp_path, table, change, sentence):
        given(tmp_path)
        with pytest.raises(JobError, match=sentence) as refused:
            runner.run(job_of(spec(tmp_path) | {table: change}), "local[2]", Console(file=io.StringIO()))
        assert "\n" not in str(refused.value)

    def test_a_board_is_a_job(self, spark, tmp_path):
        flats = td.Schema({"price": td.Number(0, 100), "rooms": td.Number(0, 10)})
        updates = pa.table({"flat": ["a", "b", "c"], "price": [30.0, 20.0, 10.0], "rooms": [2.0, 3.0, 1.0]})
        with td.open(tmp_path / "topic", "flats", flats, key="flat") as topic:
            topic.subscribe("ann", "rooms >= 2", k=1, by="-price")
            topic.flush()
            want = [(note.subscription, note.event, note.why) for note in topic.publish_batch(updates)]
        (tmp_path / "events").mkdir()
        pq.write_table(updates, tmp_path / "events" / "0.parquet")
        job = spec(tmp_path) | {"topic": {"path": str(tmp_path / "topic")}, "answer": {"kind": "board", "shards": 1}}
        progress = runner.run(job_of(without(job, "subscriptions", "changes", "refused")), "local[2]", Console(file=io.StringIO()))
        rows = spark.read.parquet(str(tmp_path / "notes")).select("subscription", "event", "why").collect()
        assert [tuple(row) for row in rows] == want == [("ann", "b", "entered")]
        assert progress.total.notifications == 1

    def test_messages_are_a_job(self, spark, tmp_path):
        flats = td.Schema({"price": td.Number(0, 100), "rooms": td.Number(0, 10)})
        updates = pa.table({"flat": ["a", "b", "c"], "price": [30.0, 20.0, 10.0], "rooms": [2.0, 3.0, 1.0]})
        with td.open(tmp_path / "topic", "flats", flats, key="flat") as topic:
            topic.subscribe("ann", "rooms >= 2", k=1, by="-price")
            topic.flush()
            topic.add_family("rooms", by="-price", k=2)
            want = topic.publish_batch(updates, as_messages=True).drop_columns(["at"]).to_pylist()
        (tmp_path / "events").mkdir()
        pq.write_table(updates, tmp_path / "events" / "0.parquet")
        answer = {"kind": "messages", "families": ["rooms:-price:2"]}
        job = spec(tmp_path) | {"topic": {"path": str(tmp_path / "topic")}, "answer": answer}
        runner.run(job_of(without(job, "subscriptions", "changes", "refused")), "local[2]", Console(file=io.StringIO()))
        rows = spark.read.parquet(str(tmp_path / "notes")).drop("at").collect()
        assert sorted((row.asDict() for row in rows), key=repr) == sorted(want, key=repr)

    def test_a_search_is_a_job(self, spark, tmp_path):
        with td.open(tmp_path / "topic", "offers", SCHEMA) as topic:
            topic.publish_batch(EVENTS.drop_columns(["time", "expires"]))
            topic.flush()
            want = sorted(topic.search("price < 20")["id"].to_pylist())
        (tmp_path / "searches").mkdir()
        pq.write_table(pa.table({"id": ["cheap", "bad"], "filter": ["price < 20", "price <"]}), tmp_path / "searches" / "0.parquet")
        searches = {"format": "parquet", "options": {"path": str(tmp_path / "searches")}}
        job = spec(tmp_path) | {"topic": {"path": str(tmp_path / "topic")}, "answer": {"kind": "search"}, "searches": searches}
        runner.run(job_of(without(job, "subscriptions", "changes", "events")), "local[2]", Console(file=io.StringIO()))
        rows = spark.read.parquet(str(tmp_path / "notes")).collect()
        assert sorted(row["event"] for row in rows) == want
        assert [row["subscription"] for row in spark.read.json(str(tmp_path / "refused")).collect()] == ["bad"]


def given(folder: Path) -> None:
    """Some subscriptions, and a file of events."""
    pq.write_table(subscriptions(20), folder / "subscriptions.parquet")
    for name in ("events", "changes"):
        (folder / name).mkdir()
    pq.write_table(EVENTS.slice(0, 30), folder / "events" / "0.parquet")


def without(job: dict, *names: str) -> dict:
    return {name: table for name, table in job.items() if name not in names}


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
