"""`keys`: who may ask a service what. Those of a folder are made beside the service, so that the first one can be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.client.calls import Call, content, described, nothing
from tidings.client.wire import encoded
from tidings.commands.outputs import AsJson, lines, say, show
from tidings.commands.target import Key, Place, is_url, service_at
from tidings.errors import TidingsError

keys = typer.Typer(help="Keys of a service: list, make, withdraw.", no_args_is_help=True)


@contextmanager
def keys_of(folder: str) -> Iterator[Any]:
    """Of a folder that is served, or will be."""
    from tidings.serve.access.keys import Keys
    from tidings.serve.hosting.ledger import Ledger
    from tidings.serve.refusals import Refusal

    ledger = Ledger(Path(folder))
    try:
        yield Keys(ledger)
    except Refusal as refusal:
        raise TidingsError(refusal.detail) from None
    finally:
        ledger.close()


@keys.command("list")
def listed(place: Place, key: Key = None, as_json: AsJson = False) -> None:
    """List keys, without what they are."""
    if is_url(place):
        with service_at(place, key) as service:
            found = service.do(Call("GET", "/keys", lambda answer: list(content(answer)["keys"]), safe=True))
    else:
        with keys_of(place) as known:
            found = [one.described() for one in known.all()]
    show(found, as_json, nothing="no keys")


@keys.command()
def make(
    place: Place,
    scope: Annotated[list[str], typer.Option(help="admin, publish, read or owner; may be repeated.")],
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    owner: Annotated[str | None, typer.Option(help="Whose subscriptions a key of scope owner has.")] = None,
    quota: Annotated[list[str] | None, typer.Option(help="NAME=NUMBER, as events=100; may be repeated.")] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown this once."""
    said = {"name": name, "scopes": scope, "owner": owner, "quotas": dict(map(quota_of, quota or ()))}
    if is_url(place):
        with service_at(place, key) as service:
            made = service.do(Call("POST", "/keys", described, body=encoded(said)))
    else:
        with keys_of(place) as known:
            one, text = known.make(said)
            made = one.described() | {"key": text}
    if as_json:
        lines([made])
    else:
        say(f"key {made['id']} with scopes {', '.join(made['scopes'])}; keep it, it is not shown again:")
        typer.echo(made["key"])


def quota_of(said: str) -> tuple[str, Any]:
    name, _, value = said.partition("=")
    try:
        return name, int(value)
    except ValueError:
        raise typer.BadParameter(f"{said!r}: NAME=NUMBER is accepted", param_hint="--quota") from None


@keys.command()
def withdraw(place: Place, id: Annotated[str, typer.Argument(help="As `tidings keys list` names it.")], key: Key = None) -> None:
    """Withdraw a key: it is refused within a second."""
    if is_url(place):
        with service_at(place, key) as service:
            service.do(Call("DELETE", f"/keys/{id}", nothing))
    else:
        with keys_of(place) as known:
            known.delete(id)
    say(f"key {id} is withdrawn")
