"""A job as `tidings run` reads it: a TOML file, and `--set` over it.

[topic]                                  the folder; made from [subscriptions] if there is none
path = "data/offers"
name = "offers"
schema = { price = "number", place = "place", about = "words" }
key = "sku"                              only for a keyed topic

[subscriptions]                          any batch source of Spark: format, options
format = "parquet"
options = { path = "data/subscriptions.parquet" }

[changes]                                any streaming source, applied while the job runs; `seq` or `time` orders those of one id
format = "parquet"
options = { path = "data/changes" }

[events]                                 any streaming source; `value = "json"` reads its column `value` as JSON events
format = "parquet"
options = { path = "data/events", maxFilesPerTrigger = "1" }

[answer]                                 "notify" (the default): shards, delay; or "match": k, relaxed, aggregate
kind = "notify"

[sink]                                   any streaming sink of Spark
format = "parquet"
options = { path = "data/notifications" }

[refused]                                a sink for events that cannot be read, with the reason; without one they are counted
format = "json"
options = { path = "data/refused" }

[run]
checkpoint = "data/checkpoint"
trigger = "available-now"                or a duration as "5 seconds", or "real-time 5 seconds"
report = "report.html"
settings = { "spark.sql.shuffle.partitions" = "2" }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tidings.errors import TidingsError, shown
from tidings.model.values.schema import Schema


class JobError(TidingsError):
    """A job cannot be read or run."""


@dataclass(frozen=True, slots=True)
class Source:
    format: str
    options: dict[str, str] = field(default_factory=dict)
    schema: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class TopicTable:
    path: str
    name: str | None = None
    schema: dict[str, Any] | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    kind: str = "notify"
    k: int | None = None
    relaxed: bool = False
    aggregate: str = "sum"
    shards: int | None = None
    delay: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    checkpoint: str
    trigger: str = "available-now"
    report: str = "report.html"
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    topic: TopicTable
    events: Source
    sink: Source
    run: Run
    subscriptions: Source | None = None
    changes: Source | None = None
    refused: Source | None = None
    answer: Answer = field(default_factory=Answer)

    @property
    def schema(self) -> Schema | None:
        return None if self.topic.schema is None else Schema.from_dict(self.topic.schema)

    @property
    def trigger(self) -> dict[str, Any]:
        """The arguments of Spark's `trigger`."""
        text = self.run.trigger.strip()
        if text == "available-now":
            return {"availableNow": True}
        if text.startswith("real-time"):
            return {"realTime": text.removeprefix("real-time").strip() or "5 seconds"}
        return {"processingTime": text}


TEXTS = ("options", "settings")
"""Tables whose values Spark takes as texts."""
_WORDS = {str: "a text", int: "a whole number", bool: "true or false", dict: "a table"}
TABLES: dict[str, type] = {
    "topic": TopicTable,
    "events": Source,
    "sink": Source,
    "run": Run,
    "subscriptions": Source,
    "changes": Source,
    "refused": Source,
    "answer": Answer,
}


def load_job(path: Path, changes: Sequence[str] = ()) -> Job:
    """The job of a TOML file, with `table.key=value` over it."""
    try:
        spec = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise JobError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise JobError(f"{path} is not TOML: {error}") from error
    for change in changes:
        set_value(spec, change)
    return job_of(spec)


def set_value(spec: dict[str, Any], change: str) -> None:
    name, equals, value = change.partition("=")
    keys = name.strip().split(".", 2)
    if not equals or len(keys) < 2:
        raise JobError(f"--set {change!r}: table.key=value is accepted, as run.trigger=available-now or events.options.path=data")
    for key in keys[:-1]:
        spec = spec.setdefault(key, {})
        if not isinstance(spec, dict):
            raise JobError(f"--set {change!r}: {key} is {shown(spec)}, which is no table")
    spec[keys[-1]] = _typed(value.strip())


def _typed(text: str) -> Any:
    """A TOML value, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def job_of(spec: Mapping[str, Any]) -> Job:
    for name in spec:
        if name not in TABLES:
            raise JobError(f"[{name}] is unknown: a job has {', '.join(f'[{table}]' for table in TABLES)}")
    for name in ("topic", "events", "sink", "run"):
        if name not in spec:
            raise JobError(f"[{name}] is missing: a job has at least [topic], [events], [sink] and [run]")
    job = Job(**{name: _table(name, TABLES[name], given) for name, given in spec.items()})
    if job.answer.kind not in ("notify", "match"):
        raise JobError(f"answer.kind is {job.answer.kind!r}: 'notify' or 'match' is accepted")
    if job.events.value not in (None, "json"):
        raise JobError(f"events.value is {job.events.value!r}: 'json' is accepted")
    return job


def _table(name: str, kind: type, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise JobError(f"{name} is {shown(given)}: a table [{name}] is accepted")
    known, types = {f.name: f for f in fields(kind)}, get_type_hints(kind)
    for key, value in given.items():
        if key not in known:
            raise JobError(f"{name}.{key} is unknown: [{name}] has {', '.join(known)}")
        if not isinstance(value, _accepted(types[key])) or (isinstance(value, bool) and types[key] is not bool):
            raise JobError(f"{name}.{key} is {shown(value)}: {_WORDS[_accepted(types[key])[0]]} is accepted")
    missing = [key for key, f in known.items() if key not in given and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise JobError(f"[{name}] needs {missing[0]}")
    return kind(**{key: {k: str(v) for k, v in value.items()} if key in TEXTS else value for key, value in given.items()})


def _accepted(annotation: Any) -> tuple[type, ...]:
    """The types of a field: of `str | None` str, since TOML has no null; of `dict[str, str]` dict."""
    parts = [
        part for part in (get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)) if part is not NoneType
    ]
    return tuple(get_origin(part) or part for part in parts)
