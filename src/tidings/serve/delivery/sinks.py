"""What a sink is, and what the ledger keeps of it: settings, secrets, state, and how far it has come."""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidings.errors import shown
from tidings.serve.delivery.addresses import read_url
from tidings.serve.delivery.outcomes import DAY
from tidings.serve.hearing.listening import Selection
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import NotFound, Unacceptable

WEBHOOK, CLOUDEVENTS, KAFKA, POSTGRES = "webhook", "cloudevents", "kafka", "postgres"
NEEDS = {WEBHOOK: ("url",), CLOUDEVENTS: ("url",), KAFKA: ("brokers", "topic"), POSTGRES: ("dsn", "channel")}
BATCH = 1000
ON, OFF = "on", "off"
HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how. `batch` is the most notes of one message, `headers` go along with HTTP, `give_up` is after how many seconds of
    trying a note becomes a dead letter."""

    kind: str
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    brokers: str = ""
    topic: str = ""
    dsn: str = ""
    channel: str = ""
    batch: int = 1
    give_up: float = DAY
    subscription: str | None = None
    owner: str | None = None

    @property
    def selection(self) -> Selection:
        return Selection(self.subscription, self.owner)


@dataclass(frozen=True, slots=True)
class Secret:
    """`until` is when it stops signing, in seconds since 1970; None while it is the newest."""

    text: str
    until: float | None = None


@dataclass(slots=True)
class Sink:
    """`status` is on or off, `reason` why it is off; `lost` counts numbers that were gone before they could be sent."""

    name: str
    target: Target
    secrets: list[Secret]
    cursor: int
    status: str = ON
    reason: str = ""
    delivered: int = 0
    lost: int = 0
    failing: str = ""

    def signing(self) -> list[str]:
        return [secret.text for secret in self.secrets if secret.until is None or secret.until > time.time()]

    def described(self) -> dict[str, Any]:
        """Without secrets, and without what headers and addresses of databases may hold."""
        target = {name: value for name, value in asdict(self.target).items() if value not in ("", {}) or name in ("batch",)}
        if "headers" in target:
            target["headers"] = dict.fromkeys(target["headers"], "***")
        if "dsn" in target:
            target["dsn"] = "***"
        said: dict[str, Any] = {"name": self.name, **target, "status": self.status, "cursor": self.cursor}
        said |= {"delivered": self.delivered, "lost": self.lost}
        return said | ({"reason": self.reason} if self.reason else {}) | ({"failing": self.failing} if self.failing else {})


def read_target(said: dict[str, Any], selection: Selection) -> Target:
    fields = dict(said)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in NEEDS:
        raise Unacceptable(f"kind is {shown(kind)}: {', '.join(NEEDS)} are accepted")
    accepted = [*NEEDS[kind], "batch", "give_up", *(["headers"] if "url" in NEEDS[kind] else [])]
    for name in fields:
        if name not in accepted:
            raise Unacceptable(f"field {shown(name)} is unknown: a sink of kind {kind} has {', '.join(accepted)}")
    for name in NEEDS[kind]:
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise Unacceptable(f"{name} is {shown(fields.get(name))}: a string that is not empty is accepted")
    if "url" in fields:
        fields["url"] = read_url(fields["url"])
    batch, give_up = fields.setdefault("batch", 1), fields.setdefault("give_up", DAY)
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= BATCH:
        raise Unacceptable(f"batch is {shown(batch)}: a whole number from 1 to {BATCH} is accepted")
    if isinstance(give_up, bool) or not isinstance(give_up, int | float) or not 0 <= give_up <= 7 * DAY:
        raise Unacceptable(f"give_up is {shown(give_up)}: seconds from 0 to {7 * DAY:g} are accepted")
    return Target(kind, **fields | {"headers": read_headers(fields.get("headers"))}, **selection._asdict())


def read_headers(said: Any) -> dict[str, str]:
    """Headers that go along; none of those that say what the message is."""
    if said is None:
        return {}
    fits = isinstance(said, dict) and all(isinstance(v, str) and v.isascii() and v.isprintable() for v in said.values())
    names = [name.lower() for name in said] if fits else []
    own = ("host", "content-length", "content-type", "transfer-encoding", "connection")
    if not fits or any(not HEADER.fullmatch(n) or n in own or n.startswith(("webhook-", "ce-")) for n in names):
        raise Unacceptable(f"headers is {shown(said)}: an object of header names and texts, none of the message's own, is accepted")
    return dict(zip(names, said.values(), strict=True))


def read_secret(said: Any) -> Secret:
    """A secret of Standard Webhooks, made if none is given."""
    if said is None:
        return Secret(PREFIX + base64.b64encode(secrets.token_bytes(32)).decode())
    try:
        size = len(base64.b64decode(said.removeprefix(PREFIX), validate=True)) if isinstance(said, str) else 0
    except (binascii.Error, ValueError):
        size = 0
    if not 24 <= size <= 64:
        raise Unacceptable("secret is not accepted: whsec_ and base64 of 24 to 64 bytes is")
    return Secret(said if said.startswith(PREFIX) else PREFIX + said)


class Sinks:
    """The ledger's sinks of all topics."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def all(self, topic: str) -> list[Sink]:
        query = "SELECT name, settings, secrets, state, cursor FROM sink WHERE topic = ? ORDER BY name"
        return [
            Sink(name, Target(**json.loads(target)), [Secret(*one) for one in json.loads(kept)], cursor, **json.loads(state))
            for name, target, kept, state, cursor in self._ledger.read(query, topic)
        ]

    def put(self, topic: str, sink: Sink) -> None:
        row = (topic, sink.name, sink.target.owner, json.dumps(asdict(sink.target)), _secrets(sink), _state(sink), sink.cursor)
        with self._ledger.change() as db:
            db.execute("INSERT OR REPLACE INTO sink VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def save(self, sinks: list[tuple[str, Sink]]) -> None:
        """How far they have come, and how they do."""
        rows = [(_state(sink), sink.cursor, topic, sink.name) for topic, sink in sinks]
        with self._ledger.change() as db:
            db.executemany("UPDATE sink SET state = ?, cursor = ? WHERE topic = ? AND name = ?", rows)

    def delete(self, topic: str, name: str) -> None:
        with self._ledger.change() as db:
            db.execute("DELETE FROM sink WHERE topic = ? AND name = ?", (topic, name))
            db.execute("DELETE FROM letter WHERE topic = ? AND sink = ?", (topic, name))


def rotated(sink: Sink, secret: Secret, overlap: float) -> list[Secret]:
    """The new secret first; those before sign along for `overlap` seconds, none longer than it did."""
    until = time.time() + overlap
    before = [replace(old, until=until if old.until is None else min(old.until, until)) for old in sink.secrets]
    return [secret, *(old for old in before if old.until is not None and old.until > time.time())]


def not_there(topic: str, name: str) -> NotFound:
    return NotFound(f"topic {topic!r} has no sink {name!r}")


def _secrets(sink: Sink) -> str:
    return json.dumps([[secret.text, secret.until] for secret in sink.secrets])


def _state(sink: Sink) -> str:
    return json.dumps({name: getattr(sink, name) for name in ("status", "reason", "delivered", "lost", "failing")})
