"""`subscribe`, `unsubscribe`, `subscriptions`, `load`, `top`, `preview`: what concerns subscriptions."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import typer

from tidings.commands.inputs import batches_of, count_of, one_object
from tidings.commands.outputs import AsJson, lines, progress, say, show
from tidings.commands.target import Key, Where, topic_at
from tidings.errors import BulkError, TidingsError
from tidings.model.door.subscription import Subscription
from tidings.model.door.subscription_record import to_record

Id = Annotated[str, typer.Argument(help="The subscription.")]
Filter = Annotated[str | None, typer.Argument(help="CQL2, text or JSON; every event without it.")]


def subscribe(
    where: Where,
    id: Id,
    filter: Filter = None,
    k: Annotated[int | None, typer.Option(help="Hear of the k best alone.")] = None,
    window: Annotated[str | None, typer.Option(help="Of the last '1 day' or '1000 events'.")] = None,
    by: Annotated[str | None, typer.Option(help="Best by this, as '-price'.")] = None,
    per: Annotated[str | None, typer.Option(help="Only the best with one value of this attribute.")] = None,
    tz: Annotated[str | None, typer.Option(help="The time zone of a window 'day', 'week' or 'month'.")] = None,
    budget: Annotated[str | None, typer.Option(help="At most so many, as '10 per day'.")] = None,
    cooldown: Annotated[str | None, typer.Option(help="Nothing for so long after one, as '1 hour'.")] = None,
    dwell: Annotated[str | None, typer.Option(help="Tell of an object that has stayed so long.")] = None,
    digest: Annotated[str | None, typer.Option(help="The best of a 'day', 'week' or 'month' together, or 'at 08:00'.")] = None,
    score: Annotated[str | None, typer.Option(help="A number, or a formula as '1 + 0.5 * price'.")] = None,
    owner: Annotated[str | None, typer.Option(help="Whose it is.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="What it is filed under; may be repeated.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends, ISO 8601.")] = None,
    replay: Annotated[bool, typer.Option(help="Tell of the live events that match first.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Register a subscription, or replace it."""
    asked = one_object(filter) if filter is not None and filter.lstrip().startswith("{") else filter
    with topic_at(where, key) as topic:
        notes = topic.subscribe(
            id,
            asked,
            k=k,
            window=window,
            by=by,
            per=per,
            tz=tz,
            budget=budget,
            cooldown=cooldown,
            dwell=dwell,
            digest=digest,
            score=number(score),
            owner=owner,
            tags=tag,
            expires=expires,
            replay=replay,
        )
    show((note.to_dict() for note in notes), as_json, nothing=f"{id!r} is subscribed")


def number(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def unsubscribe(where: Where, ids: Annotated[list[str], typer.Argument(help="The subscriptions.")], key: Key = None) -> None:
    """Remove subscriptions; fails if none of them is there."""
    with topic_at(where, key) as topic:
        removed = topic.unsubscribe_many(ids)
    if not removed:
        raise TidingsError(f"there is no subscription {ids[0]!r}" if len(ids) == 1 else "none of these subscriptions is there")
    say(f"{removed} unsubscribed")


def subscriptions(
    where: Where,
    owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    after: Annotated[str | None, typer.Option(help="From after this id on.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many.")] = 100,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List subscriptions by id."""
    with topic_at(where, key, reading=True) as topic:
        found = topic.subscriptions(owner=owner, tag=tag, after=after, limit=limit)
    show(map(to_record if as_json else summary, found), as_json, nothing="no subscriptions")


def summary(s: Subscription) -> dict[str, Any]:
    fields = {"id": s.id, "filter": s.filter, "k": s.k, "window": None if s.window is None else str(s.window), "by": s.by}
    return fields | {"owner": s.owner, "tags": ", ".join(s.tags) or None}


def load(
    where: Where,
    file: Annotated[str, typer.Argument(help="Parquet, CSV or JSON lines of subscriptions; - reads lines.")],
    skip: Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out instead of refusing their batch.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Load many subscriptions, ten thousand at a time, each batch as one change."""
    taken = 0
    with topic_at(where, key) as topic, progress() as bar:
        task = bar.add_task("loading", total=count_of(file))
        before = 0
        for batch in batches_of(file):
            try:
                taken += topic.subscribe_many(table_of(batch), on_error="skip" if skip else "raise")
            except BulkError as error:
                raise TidingsError(f"{taken} were loaded, then from row {before} on: {error}") from None
            before += len(batch)
            bar.update(task, advance=len(batch))
    if as_json:
        lines([{"taken": taken, "rows": before}])
    else:
        say(f"{taken} of {before} subscriptions were loaded")


def table_of(batch: pa.Table | list[Any]) -> pa.Table:
    return batch if isinstance(batch, pa.Table) else pa.Table.from_pylist(batch)


def top(where: Where, id: Id, key: Key = None, as_json: AsJson = False) -> None:
    """A subscription's current list, best first."""
    with topic_at(where, key, reading=True) as topic:
        found = topic.top(id)
    show(({"rank": rank, "event": m.event, "score": m.score} for rank, m in enumerate(found, 1)), as_json, nothing="an empty list")


def preview(
    where: Where,
    filter: Filter = None,
    k: Annotated[int | None, typer.Option(help="Hear of the k best alone.")] = None,
    window: Annotated[str | None, typer.Option(help="Of the last '1 day' or '1000 events'.")] = None,
    by: Annotated[str | None, typer.Option(help="Best by this, as '-price'.")] = None,
    over: Annotated[str, typer.Option(help="How far back.")] = "7 days",
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """What a subscription would have told of the events that are live."""
    with topic_at(where, key, reading=True) as topic:
        seen = topic.preview(filter, k=k, window=window, by=by, over=over)
    if as_json:
        lines([seen.to_dict()])
        return
    say(f"{seen.told} of {seen.events} events in {over}: {seen.a_day:g} a day")
    first = zip(seen.first, seen.reasons, strict=True)
    show(({"at": note.at, "event": note.event, "score": note.score, "reason": reason} for note, reason in first), False)
