"""From TOML to a `Job`: every mistake at once, a sentence each, before Spark starts.

A table is checked by its model (`job_file`); then what only several tables together can say; then, where the job runs on this
machine, whether what it reads is there.
"""

from __future__ import annotations

import difflib
import glob
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidings.durable.snapshots import holds_topic
from tidings.errors import TidingsError, shown
from tidings.spark.job.job_file import GATEWAYS, Answer, Job, JobError, Run, Source, Table, TopicTable

KINDS: dict[str, type[Table]] = {
    name: next(kind for kind in (*get_args(field.annotation), field.annotation) if kind not in (NoneType, None))
    for name, field in Job.model_fields.items()
}
NEEDED = tuple(name for name, field in Job.model_fields.items() if field.is_required())
FILES = ("parquet", "json", "csv", "orc", "text", "xml", "avro", "binaryFile")
OTHERS = ("kafka", "delta", "iceberg", "rate", "rate-micro-batch", "socket", "console", "memory", "noop", "jdbc", "statestore")
READ = ("events", "searches", "changes", "subscriptions")
WRITTEN = ("sink", "refused")
NOT_OF: dict[str, tuple[str, ...]] = {
    "notify": ("k", "relaxed", "aggregate", "families"),
    "match": ("shards", "delay", "families"),
    "board": ("k", "relaxed", "aggregate", "delay", "families"),
    "messages": ("k", "relaxed", "aggregate", "shards", "delay"),
    "search": ("k", "relaxed", "aggregate", "shards", "delay", "families"),
}


def load_job(path: Path, changes: Sequence[str] = (), master: str = "local[*]") -> Job:
    """The job of a TOML file, with `table.key=value` over it, to be run on `master`."""
    try:
        spec = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise JobError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise JobError(f"{path} is not TOML: {error}") from error
    for change in changes:
        set_value(spec, change)
    return job_of(spec, master)


def set_value(spec: dict[str, Any], change: str) -> None:
    name, equals, value = change.partition("=")
    keys = name.strip().split(".", 2)
    if not equals or len(keys) < 2:
        raise JobError(f"--set {change!r}: table.key=value is accepted, as run.trigger=available-now or events.options.path=data")
    for key in keys[:-1]:
        spec = spec.setdefault(key, {})
        if not isinstance(spec, dict):
            raise JobError(f"--set {change!r}: {key} is {shown(spec)} in the file, no table")
    spec[keys[-1]] = _typed(value.strip())


def _typed(text: str) -> Any:
    """A TOML value, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def job_of(spec: Mapping[str, Any], master: str = "local[*]") -> Job:
    """The job, or all that is wrong with it."""
    tables: dict[str, Table] = {}
    mistakes = [f"[{name}] is unknown: {nearest(name, KINDS)}a job has {bracketed(KINDS)}" for name in spec if name not in KINDS]
    mistakes += [f"[{name}] is missing: a job has at least {bracketed(NEEDED)}" for name in NEEDED if name not in spec]
    for name, given in spec.items():
        if name in KINDS:
            try:
                tables[name] = KINDS[name].model_validate(given)
            except ValidationError as error:
                mistakes += [sentence(name, one) for one in error.errors()]
    mistakes += [*contradictions(tables, spec), *formats(tables)]
    if master.startswith("local"):
        mistakes += [*absent(tables), *no_topic(tables, spec)]
    if mistakes:
        raise JobError(listed(mistakes))
    return Job.model_validate(tables)


def listed(mistakes: Sequence[str]) -> str:
    if len(mistakes) == 1:
        return mistakes[0]
    return "\n".join([f"the job has {len(mistakes)} mistakes", *(f"  {mistake}" for mistake in mistakes)])


def sentence(name: str, error: ErrorDetails) -> str:
    """What pydantic found, as the file says it."""
    inside = [str(part) for part in error["loc"]]
    field = ".".join([name, *inside])
    known = [given.alias or own for own, given in KINDS[name].model_fields.items()]
    match error["type"]:
        case "missing":
            return f"[{name}] needs {inside[0]}"
        case "extra_forbidden":
            return f"{field} is unknown: {nearest(inside[0], known)}[{name}] has {', '.join(known)}"
        case "model_type" | "model_attributes_type":
            return f"{name} is {shown(error['input'])}: a table [{name}] is accepted"
        case "value_error":
            return f"{field} is {shown(error['input'])}: {error['ctx']['error']}"
        case "literal_error":
            return f"{field} is {shown(error['input'])}: {error['ctx']['expected']} is accepted"
    said = error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{field} is {shown(error['input'])}: {said} is accepted"


def contradictions(tables: Mapping[str, Table], spec: Mapping[str, Any]) -> Iterator[str]:
    """What only the tables together can say."""
    answer = tables.get("answer", Answer())
    if not isinstance(answer, Answer) or ("answer" in spec and "answer" not in tables):
        return
    asked, other = ("searches", "events") if answer.kind == "search" else ("events", "searches")
    if asked not in spec:
        yield f"[{asked}] is missing: it is what a job with answer.kind {answer.kind!r} reads"
    if other in spec:
        yield f"[{other}] is not read by a job with answer.kind {answer.kind!r}: [{asked}] is"
    for field in NOT_OF[answer.kind]:
        if field in answer.model_fields_set:
            yield f"answer.{field} is not of answer.kind {answer.kind!r}"
    run = tables.get("run")
    if isinstance(run, Run) and run.warm_up and run.folder is None:
        yield "run.warm_up is true: it is accepted with a checkpoint in a folder"
    sink = tables.get("sink")
    if isinstance(sink, Source) and sink.format == GATEWAYS:
        yield from gateways(answer, sink)
    events, refused = tables.get("events"), tables.get("refused")
    if answer.kind == "messages" and not answer.families:
        yield "answer.families is missing: attribute:by:k of at least one is accepted, as ['price:-stars:20']"
    if answer.kind in ("board", "messages") and refused is not None and isinstance(events, Source) and events.value is None:
        yield "[refused] of a board takes what cannot be parsed: events.value = 'json' is accepted with it"


def gateways(answer: Answer, sink: Source) -> Iterator[str]:
    if answer.kind != "messages":
        yield f"sink.format is {GATEWAYS!r}, which takes messages: answer.kind = 'messages' is accepted with it"
    if "brokers" not in sink.options:
        yield "sink.options.brokers is missing: Kafka's address is accepted, as localhost:9092"
    zones, sparse = sink.options.get("zones", "1"), sink.options.get("sparse", "false")
    if not zones.isdecimal() or int(zones) < 1:
        yield f"sink.options.zones is {zones!r}: a whole number from 1 on is accepted"
    if sparse not in ("true", "false"):
        yield f"sink.options.sparse is {sparse!r}: true or false is accepted"


def formats(tables: Mapping[str, Table]) -> Iterator[str]:
    """Misspelt formats, and files without a path. A format of which nothing is known here is left to Spark."""
    for name, source in tables.items():
        if not isinstance(source, Source):
            continue
        meant = difflib.get_close_matches(source.format, [*FILES, *OTHERS, GATEWAYS], 1, 0.75)
        if meant and source.format.lower() not in (known.lower() for known in (*FILES, *OTHERS, GATEWAYS)):
            yield f"{name}.format is {source.format!r}: did you mean {meant[0]!r}?"
        if source.format in FILES and "path" not in source.options:
            yield f"{name}.options has no path: {source.format} takes one, as options = {{ path = 'data/{name}' }}"


def absent(tables: Mapping[str, Table]) -> Iterator[str]:
    """Files on this machine that a source would look for in vain."""
    for name in READ:
        source = tables.get(name)
        if isinstance(source, Source) and source.format in FILES and "path" in source.options:
            path = source.options["path"]
            if "://" not in path and not path.startswith("file:") and not glob.glob(path):
                yield f"{name}.options.path is {path!r}, where there is nothing"


def no_topic(tables: Mapping[str, Table], spec: Mapping[str, Any]) -> Iterator[str]:
    topic = tables.get("topic")
    try:
        if not isinstance(topic, TopicTable) or "://" in topic.path or holds_topic(topic.path):
            return
    except TidingsError as error:
        yield str(error)
        return
    answer = tables.get("answer")
    if isinstance(answer, Answer) and answer.kind == "search":
        yield f"topic.path is {topic.path!r}, which holds no topic whose live events could be searched"
    elif "subscriptions" not in spec or topic.attributes is None:
        yield f"topic.path is {topic.path!r}, which holds no topic; to make one the job needs topic.schema and [subscriptions]"


def nearest(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    meant = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {meant[0]!r}? " if meant else ""


def bracketed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(f"[{name}]" for name in names)


def json_schema() -> dict[str, Any]:
    """For editors: what a job file may have."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Job.model_json_schema()}
