"""`sinks` and `dead-letters`: where a service delivers, and what could not be delivered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidings.client.calls import Call, content, described, nothing
from tidings.client.service import Service
from tidings.client.wire import encoded
from tidings.commands.outputs import AsJson, lines, say, show
from tidings.commands.target import Key, Where, service_at, split
from tidings.errors import TidingsError

sinks = typer.Typer(help="Where a service delivers: list, make, rotate a secret, remove.", no_args_is_help=True)
letters = typer.Typer(help="What could not be delivered: list, read, send again.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The sink.")]


@contextmanager
def sinks_at(where: str, key: str | None, *parts: str) -> Iterator[tuple[Service, str]]:
    """The service, and the address of what is asked for."""
    if not where.startswith("http"):
        raise TidingsError(f"{where!r} is a folder, which delivers to nobody: http://host:port/NAME at a service is accepted")
    url, topic = split(where)
    with service_at(url, key) as service:
        yield service, "/".join([f"/topics/{quote(topic, safe='')}/sinks", *(quote(part, safe="") for part in parts)])


@sinks.command("list")
def listed(where: Where, key: Key = None, as_json: AsJson = False) -> None:
    """Every sink, how far it is behind, and how many dead letters it has."""
    with sinks_at(where, key) as (service, at):
        found = service.do(Call("GET", at, lambda answer: list(content(answer)["sinks"]), safe=True))
    show(found, as_json, nothing="no sinks")


@sinks.command()
def make(
    where: Where,
    name: Name,
    said: Annotated[str, typer.Argument(help='As JSON: {"kind": "webhook", "url": "https://..."}; docs/service.md has the kinds.')],
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Make a sink, or replace it. The secret of a new webhook is shown this once."""
    try:
        asked = json.loads(said)
    except ValueError as error:
        raise TidingsError(f"{said[:60]!r} is no JSON: {error}") from None
    with sinks_at(where, key, name) as (service, at):
        made = service.do(Call("PUT", at, described, body=encoded(asked)))
    show_secret(made, as_json)


@sinks.command()
def rotate(
    where: Where,
    name: Name,
    overlap: Annotated[float, typer.Option(help="Seconds for which the secret before signs along.")] = 86400.0,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Give a webhook a new secret, shown this once."""
    with sinks_at(where, key, name, "rotate") as (service, at):
        made = service.do(Call("POST", at, described, body=encoded({"overlap": overlap})))
    show_secret(made, as_json)


def show_secret(made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        lines([made])
    elif "secret" in made:
        say("its secret; keep it, it is not shown again:")
        typer.echo(made["secret"])
    else:
        say("it is there, and goes on where it was")


@sinks.command()
def remove(where: Where, name: Name, key: Key = None) -> None:
    """Forget a sink and its dead letters."""
    with sinks_at(where, key, name) as (service, at):
        service.do(Call("DELETE", at, nothing))
    say(f"sink {name!r} is removed")


@letters.command("list")
def dead(
    where: Where,
    name: Name,
    after: Annotated[int, typer.Option(help="Only those numbered above.")] = 0,
    limit: Annotated[int, typer.Option(help="At most so many, up to 1000.")] = 100,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Dead letters of a sink, oldest first."""
    with sinks_at(where, key, name, "dead-letters") as (service, at):
        asked = {"after": str(after), "limit": str(limit)}
        found = service.do(Call("GET", at, lambda answer: list(content(answer)["dead_letters"]), asked, safe=True))
    show(found, as_json, nothing="no dead letters")


@letters.command()
def read(where: Where, name: Name, number: Annotated[int, typer.Argument(help="As `list` says.")], key: Key = None) -> None:
    """One dead letter with its notification, as JSON."""
    with sinks_at(where, key, name, "dead-letters", str(number)) as (service, at):
        typer.echo(json.dumps(service.do(Call("GET", at, described, safe=True)), indent=2, ensure_ascii=False))


@letters.command()
def resend(
    where: Where,
    name: Name,
    numbers: Annotated[list[int] | None, typer.Argument(help="Which; the oldest 100 without.")] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Send dead letters again."""
    with sinks_at(where, key, name, "dead-letters", "resend") as (service, at):
        said = service.do(Call("POST", at, described, body=encoded({"numbers": numbers} if numbers else {})))
    show([said], as_json)
