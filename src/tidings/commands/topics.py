"""`init`, `topics` and `stats`: topics made, listed, and in numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

import tidings as td
from tidings.client.connecting import connect
from tidings.commands.inputs import sample_of
from tidings.commands.outputs import AsJson, lines, say, show
from tidings.commands.target import Key, Place, Where, folders, is_url, opened, split, topic_at
from tidings.errors import SchemaError
from tidings.model.values.schema import RESERVED, Schema

MOST_CATEGORIES = 1000
JOB = """# Runs with `tidings run {file}`; docs/spark.md says what else a job can do.
[topic]
path = "{name}-topic"
name = "{name}"
schema = {{ {schema} }}

[subscriptions]
format = "parquet"
options = {{ path = "subscriptions.parquet" }}

[events]
format = "{format}"
options = {{ path = "{source}" }}

[sink]
format = "parquet"
options = {{ path = "notifications" }}

[run]
checkpoint = "checkpoint"
trigger = "available-now"
"""


def init(
    where: Where,
    source: Annotated[str, typer.Argument(help="Parquet, CSV or JSON lines whose columns become attributes.")],
    key: Key = None,
    object_key: Annotated[str | None, typer.Option("--by", help="The column that names the objects of a keyed topic.")] = None,
    job: Annotated[Path | None, typer.Option(help="Write a job file for Spark instead of a topic.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Only print the schema.")] = False,
) -> None:
    """Make a topic (or a job) from a file, by looking at its columns."""
    schema = guessed(sample_of(source), object_key)
    typer.echo(json.dumps(schema.to_dict(), indent=2, ensure_ascii=False))
    if dry_run:
        return
    name = split(where)[1] if is_url(where) else Path(where).name
    if job is not None:
        form = {".parquet": "parquet", ".csv": "csv"}.get(Path(source).suffix.lower(), "json")
        attributes = ", ".join(schema.to_toml().strip().splitlines())
        job.write_text(JOB.format(file=job.name, name=name, schema=attributes, format=form, source=source), encoding="utf-8")
        say(f"{job} is written; look it over, then: tidings check {job}")
        return
    if is_url(where):
        url, name = split(where)
        with connect(url, key) as service:
            service.make(name, schema, key=object_key)
    else:
        td.open(where, name, schema, key=object_key).close()
    say(f"topic {name!r} is made with {len(schema)} attributes; next: tidings subscribe {where} ID FILTER")


def guessed(table: pa.Table, key: str | None = None) -> Schema:
    """A schema for the columns of a table; columns of a kind that no attribute has are left out, and named."""
    found: dict[str, Any] = {}
    for name in table.column_names:
        if name == key or name in RESERVED:
            continue
        attribute = attribute_of(table[name])
        if attribute is None or not name.isidentifier():
            say(f"column {name!r} ({table[name].type}) is left out: no attribute holds it")
        else:
            found[name] = attribute
    if not found:
        raise SchemaError("no column can be an attribute: numbers, strings, times, dates, booleans and points are")
    if key is not None and key not in table.column_names:
        raise SchemaError(f"there is no column {key!r}: {', '.join(table.column_names)} are there")
    return Schema(found)


def attribute_of(column: pa.ChunkedArray) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return td.Bool()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return td.Number()
    if pa.types.is_timestamp(kind):
        return td.Time()
    if pa.types.is_date(kind):
        return td.Date()
    if pa.types.is_struct(kind):
        names = {field.name for field in kind}
        return td.Place() if names in ({"x", "y"}, {"xmin", "ymin", "xmax", "ymax"}) else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return td.Words() if is_prose(column) else td.Category()
    return td.Words() if pa.types.is_list(kind) and pa.types.is_string(kind.value_type) else None


def is_prose(column: pa.ChunkedArray) -> bool:
    """Texts of several words that hardly repeat are words; what repeats is a category."""
    there = column.drop_null().cast(pa.string())
    if not len(there):
        return False
    words = pc.mean(pc.count_substring(there, " ")).as_py()
    distinct = pc.count_distinct(there).as_py()
    return bool(words >= 1) and bool(distinct > MOST_CATEGORIES or distinct > len(there) / 2)


def topics(place: Place, key: Key = None, as_json: AsJson = False) -> None:
    """List the topics of a folder or a service."""
    if is_url(place):
        with connect(place, key) as service:
            show(service.topics() if as_json else map(summary, service.topics()), as_json, nothing="no topics")
        return
    rows = []
    for folder in folders(place):
        with opened(str(folder), "r") as topic:
            rows.append({"name": topic.name, "subscriptions": len(topic), "key": topic.key, "schema": topic.schema.to_dict()})
    show(rows if as_json else map(summary, rows), as_json, nothing="no topics")


def summary(topic: dict[str, Any]) -> dict[str, Any]:
    attributes = ", ".join(f"{name} {spec['type']}" for name, spec in topic["schema"].items())
    return {"name": topic["name"], "subscriptions": topic["subscriptions"], "key": topic["key"], "attributes": attributes}


def stats(where: Where, key: Key = None, as_json: AsJson = False) -> None:
    """A topic in numbers."""
    with topic_at(where, key, reading=True) as topic:
        found = topic.stats()
    if as_json:
        lines([found])
    else:
        show([{"what": name, "is": value} for name, value in found.items()], False)
