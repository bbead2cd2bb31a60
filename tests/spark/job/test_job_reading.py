"""Job files: every mistake at once, a sentence each, before Spark starts; the JSON Schema; `--set`; what the command prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.samples import SCHEMA
from tidings.spark.job.job_file import JobError
from tidings.spark.job.job_reading import job_of, json_schema, load_job, set_value


def spec(folder: Path) -> dict:
    """A job whose files are there."""
    for name in ("subscriptions", "events"):
        (folder / name).mkdir(exist_ok=True)
    return {
        "topic": {"path": str(folder / "topic"), "name": "offers", "schema": SCHEMA.to_dict()},
        "subscriptions": {"format": "parquet", "options": {"path": str(folder / "subscriptions")}},
        "events": {"format": "parquet", "options": {"path": str(folder / "events"), "maxFilesPerTrigger": 1}},
        "sink": {"format": "parquet", "options": {"path": str(folder / "notes")}},
        "run": {"checkpoint": str(folder / "checkpoint")},
    }


MISTAKES = [
    ({"events": None}, "[events] is missing"),
    ({"zebras": {}}, "[zebras] is unknown: a job has [topic], "),
    ({"event": {}}, "[event] is unknown: did you mean 'events'? a job has "),
    ({"run": {}}, "[run] needs checkpoint"),
    ({"run": {"checkpoint": "c", "often": 1}}, "run.often is unknown: [run] has checkpoint, trigger"),
    ({"run": {"checkpoint": 7}}, "run.checkpoint is 7: string is accepted"),
    (
        {"run": {"checkpoint": "c", "trigger": "5 parsecs"}},
        "run.trigger is '5 parsecs': 'available-now' or a duration as '5 seconds'",
    ),
    ({"run": {"checkpoint": "c", "trigger": "real-time 5 seconds"}}, "run.trigger is 'real-time 5 seconds': "),
    ({"answer": {"kind": "tell"}}, "answer.kind is 'tell': 'notify', 'match', 'board', 'messages' or 'search' is accepted"),
    ({"answer": {"k": 3}}, "answer.k is not of answer.kind 'notify'"),
    ({"answer": {"kind": "match", "k": -1}}, "answer.k is -1: greater than or equal to 0 is accepted"),
    ({"answer": {"shards": True}}, "answer.shards is True: integer is accepted"),
    ({"answer": {"delay": "5 events"}}, "answer.delay is '5 events': a duration as '5 seconds' or '10 min' is accepted"),
    ({"answer": {"kind": "search"}}, "[searches] is missing: it is what a job with answer.kind 'search' reads"),
    ({"sink": "parquet"}, "sink is 'parquet': a table [sink] is accepted"),
    ({"sink": {"format": "parqet", "options": {"path": "x"}}}, "sink.format is 'parqet': did you mean 'parquet'?"),
    ({"sink": {"format": "json"}}, "sink.options has no path: json takes one, as options = { path = 'data/sink' }"),
    ({"sink": {"format": "gateway"}}, "sink.format is 'gateway': did you mean 'gateways'?"),
    (
        {"sink": {"format": "gateways"}},
        "sink.format is 'gateways', which takes messages: answer.kind = 'messages' is accepted",
    ),
    ({"sink": {"format": "gateways"}}, "sink.options.brokers is missing: Kafka's address is accepted, as localhost:9092"),
    (
        {"sink": {"format": "gateways", "options": {"zones": "many"}}},
        "sink.options.zones is 'many': a whole number from 1 on",
    ),
    ({"sink": {"format": "gateways", "options": {"sparse": "no"}}}, "sink.options.sparse is 'no': true or false is accepted"),
    ({"events": {"format": "csv", "options": {"path": "no/such/*"}}}, "events.options.path is 'no/such/*', where there is nothing"),
    ({"subscriptions": None}, "which holds no topic; to make one the job needs topic.schema and [subscriptions]"),
    ({"topic": {"path": "t", "schema": {"price": "numbr"}}}, "topic.schema is {'price': 'numbr'}: "),
]


@pytest.mark.parametrize(("change", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(tmp_path, change, sentence):
    with pytest.raises(JobError) as refused:
        job_of(changed(spec(tmp_path), change))
    assert sentence in str(refused.value)


def changed(job: dict, change: dict) -> dict:
    return {name: table for name, table in {**job, **change}.items() if table is not None}


def test_all_mistakes_are_told_at_once(tmp_path):
    job = spec(tmp_path) | {"sources": {}, "answer": {"kind": "tell"}, "sink": {"format": "parqet"}}
    job["run"] = {"trigger": "now"}
    job["events"] = {"format": "json", "options": {"path": str(tmp_path / "nothing")}}
    with pytest.raises(JobError, match="the job has 6 mistakes") as refused:
        job_of(job)
    assert str(refused.value).count("\n  ") == 6


def test_paths_of_a_cluster_are_left_to_it(tmp_path):
    job = changed(spec(tmp_path), {"events": {"format": "json", "options": {"path": "/of/the/cluster"}}})
    assert job_of(job, "spark://host:7077").asked.options["path"] == "/of/the/cluster"


def test_set_changes_a_field(tmp_path):
    given = spec(tmp_path)
    set_value(given, "run.trigger=7 seconds")
    set_value(given, "answer.shards=5")
    set_value(given, "events.options.maxFilesPerTrigger=3")
    job = job_of(given)
    assert job.run.spark_trigger == {"processingTime": "7000 milliseconds"}
    assert job.answer.shards == 5
    assert job.asked.options["maxFilesPerTrigger"] == "3"
    with pytest.raises(JobError, match=r"table\.key=value is accepted"):
        set_value(given, "trigger")
    with pytest.raises(JobError, match="in the file, no table"):
        set_value({"run": 5}, "run.trigger=now")
    with pytest.raises(JobError, match="cannot read"):
        load_job(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("trigger", "meant"),
    [("available-now", {"availableNow": True}), ("10 min", {"processingTime": "600000 milliseconds"})],
)
def test_triggers(tmp_path, trigger, meant):
    job = spec(tmp_path)
    job["run"]["trigger"] = trigger
    assert job_of(job).run.spark_trigger == meant


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
names = st.sampled_from(["topic", "events", "sink", "run", "answer", "refused", "changes"]) | st.text(max_size=5)


@given(st.dictionaries(names, values, max_size=5))
def test_whatever_a_file_says_is_read_or_refused(given):
    with pytest.raises(JobError):
        job_of(given)


def test_the_json_schema_has_every_table():
    schema = json_schema()
    assert schema["required"] == ["topic", "sink", "run"]
    assert {"events", "searches", "answer"} <= schema["properties"].keys()
    assert "schema" in schema["$defs"]["TopicTable"]["properties"]
    assert schema["$defs"]["Answer"]["properties"]["kind"]["enum"] == ["notify", "match", "board", "messages", "search"]


def tidings(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "tidings", *arguments], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def test_the_command_checks_without_spark_and_prints_brackets_as_they_are(tmp_path):
    (tmp_path / "job.toml").write_text("[run]\ncheckpoint = 'c'\n[zebras]\n")
    status, said = tidings("check", str(tmp_path / "job.toml"))
    assert status == 1
    assert "[zebras] is unknown: a job has [topic], [sink], [run], [events]" in said
    assert "[topic] is missing" in said
    status, said = tidings("check", "--schema")
    assert status == 0
    assert json.loads(said) == json_schema()


def test_the_demo_is_a_job():
    with pytest.raises(JobError, match="3 mistakes") as refused:
        load_job(Path("demo/job.toml"), ["events.options.path=no", "changes.options.path=no", "subscriptions.options.path=no"])
    assert "where there is nothing" in str(refused.value)
