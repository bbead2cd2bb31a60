"""`publish`, `match`, `explain`, `search`, `listen`: what concerns events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from tidings.client.remote_topic import RemoteTopic
from tidings.commands.inputs import batches_of, count_of, is_file, one_object
from tidings.commands.outputs import AsJson, lines, progress, say, show
from tidings.commands.target import Key, Where, topic_at
from tidings.errors import TidingsError

EventOrFile = Annotated[str, typer.Argument(help="An event as JSON, or a file of Parquet, CSV or JSON lines; - reads lines.")]
AnEvent = Annotated[str, typer.Argument(help="An event as JSON.")]
BATCH = 1000
ENVELOPE = ("id", "time", "expires", "deleted")


def publish(where: Where, events: EventOrFile, key: Key = None, as_json: AsJson = False) -> None:
    """Publish an event and show who is told, or a file of them and count; columns that are no attributes are left out."""
    if not is_file(events):
        with topic_at(where, key) as topic:
            notes = topic.publish(one_object(events))
        show((note.to_dict() for note in notes), as_json, nothing="nobody is told")
        return
    published = told = 0
    with topic_at(where, key) as topic, progress() as bar:
        task = bar.add_task("publishing", total=count_of(events))
        for batch in batches_of(events, BATCH):
            batch = known_columns(batch, {*topic.schema, topic.key, *ENVELOPE})
            if isinstance(topic, RemoteTopic):
                posted = topic.post(batch)
                published, told = published + posted.events, told + posted.told
            else:
                told += len(topic.publish_batch(batch))
                published += len(batch)
            bar.update(task, advance=len(batch))
    if as_json:
        lines([{"events": published, "told": told}])
    else:
        say(f"{published} events were published, {told} notifications told")


def known_columns(batch: Any, known: set[str | None]) -> Any:
    """A table without the columns that the topic has no attribute for."""
    return batch.select([name for name in batch.column_names if name in known]) if hasattr(batch, "column_names") else batch


def match(
    where: Where,
    event: AnEvent,
    k: Annotated[int | None, typer.Option(help="Only the k best.")] = None,
    relaxed: Annotated[bool, typer.Option(help="Those of whom at least one dimension holds, by how many do.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Who would hear of an event; nothing is published."""
    with topic_at(where, key, reading=True) as topic:
        found = topic.match(one_object(event), k, relaxed=relaxed)
    show((m._asdict() if as_json else {"subscription": m.subscription, "score": m.score} for m in found), as_json, nothing="nobody")


def explain(
    where: Where,
    event: AnEvent,
    subscription: Annotated[str | None, typer.Argument(help="Whose answer; without it, what each step of matching leaves.")] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Why a subscription does or does not hear of an event."""
    with topic_at(where, key, reading=True) as topic:
        found = topic.explain(one_object(event), subscription)
    if as_json:
        fields = ("event", "subscription", "matched", "reason", "score", "home", "steps", "plans")
        lines([{name: getattr(found, name) for name in fields}])
    else:
        typer.echo(str(found))


def search(
    where: Where,
    filter: Annotated[str | None, typer.Argument(help="CQL2, text or JSON; every live event without it.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many are shown.")] = 100,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """The live events that match."""
    asked = one_object(filter) if filter is not None and filter.lstrip().startswith("{") else filter
    with topic_at(where, key, reading=True) as topic:
        found = topic.search(asked)
    rows = found.slice(0, limit).to_pylist()
    show(({name: value for name, value in row.items() if value is not None} for row in rows), as_json, nothing="no live event")
    if found.num_rows > limit:
        say(f"{found.num_rows - limit} more: --limit shows them")


def listen(
    where: Where,
    subscription: Annotated[str | None, typer.Argument(help="Only this subscription's.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None,
    consumer: Annotated[str | None, typer.Option(help="As this consumer, from where it was.")] = None,
    after: Annotated[int | None, typer.Option(help="From after this number on; from now without it.")] = None,
    count: Annotated[int | None, typer.Option(help="End after so many.")] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Notifications of a service as they come, until Ctrl-C."""
    with topic_at(where, key, reading=True) as topic:
        if not isinstance(topic, RemoteTopic):
            raise TidingsError("a folder tells nobody: serve it with `tidings serve`, and listen at http://host:port/NAME")
        stream = topic.listen(subscription, owner=owner, consumer=consumer, after=after)
        try:
            for number, note in enumerate(stream, 1):
                row = note._asdict() | {"at": note.at.isoformat()}
                lines([row]) if as_json else typer.echo(sentence(row))
                if number == count:
                    break
        except KeyboardInterrupt:
            pass
        finally:
            close(stream)


def close(stream: Iterator[Any]) -> None:
    getattr(stream, "close", lambda: None)()


def sentence(row: Mapping[str, Any]) -> str:
    rank = "" if row["rank"] is None else f", rank {row['rank']}"
    event = row["event"] or {}
    return f"{row['at']}  {row['subscription']}  {row['why']}{rank}  score {row['score']:g}  {event}"
