"""API keys: shown once, when they are made, and kept as hashes.

A key is `td_` and 43 random characters, so a plain SHA-256 is as good as any slower hash: there is nothing to guess. Keys are known
in memory; another process's change is seen within a second.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from tidings.errors import EventError, shown
from tidings.model.door.single_values import read_name
from tidings.serve.access.callers import ADMIN, OWNER, SCOPES, Caller
from tidings.serve.access.quotas import Quotas
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import NotFound, Unacceptable

FRESH = 1.0
"""Seconds for which what is known of other processes' changes is taken for true."""
PREFIX = "td_"


@dataclass(frozen=True, slots=True)
class Key:
    """What is kept of a key; `id` names it in lists and logs."""

    id: str
    name: str
    scopes: tuple[str, ...]
    owner: str | None
    quotas: Quotas
    made: str

    def described(self) -> dict[str, Any]:
        quotas = {name: value for name, value in asdict(self.quotas).items() if value is not None}
        return asdict(self) | {"scopes": list(self.scopes), "quotas": quotas}

    @property
    def caller(self) -> Caller:
        return Caller(self.id, frozenset(self.scopes), self.owner, self.quotas)


class Keys:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._turn = threading.Lock()
        self._callers: dict[str, Caller] = {}
        self._version = self._looked = -1.0
        self._look()

    def make(self, said: dict[str, Any]) -> tuple[Key, str]:
        """A new key of these scopes, owner and quotas, and its text, which is never shown again."""
        key = read_key(said)
        text = PREFIX + secrets.token_urlsafe(32)
        body = json.dumps(key.described())
        with self._ledger.change() as db:
            db.execute("INSERT INTO key VALUES (?, ?, ?)", (key.id, digest(text), body))
        self._look()
        return key, text

    def all(self) -> list[Key]:
        return sorted((_kept(body) for (body,) in self._ledger.read("SELECT body FROM key")), key=lambda key: (key.made, key.id))

    def delete(self, id: str) -> None:
        with self._ledger.change() as db:
            if not db.execute("DELETE FROM key WHERE id = ?", (id,)).rowcount:
                raise NotFound(f"there is no key {shown(id)}")
        self._look()

    def caller(self, text: str) -> Caller | None:
        """Whose key this is."""
        if time.monotonic() - self._looked > FRESH:
            self._look_again()
        return self._callers.get(digest(text))

    def _look_again(self) -> None:
        with self._turn:
            self._looked = time.monotonic()
            version = self._ledger.version()
        if version != self._version:
            self._look()

    def _look(self) -> None:
        with self._turn:
            self._version, self._looked = self._ledger.version(), time.monotonic()
            rows = self._ledger.read("SELECT hash, body FROM key")
            self._callers = {hash: _kept(body).caller for hash, body in rows}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_key(said: dict[str, Any]) -> Key:
    """A key as it is asked for: `{"name": "shop", "scopes": ["publish"], "owner": null, "quotas": {"events": 100}}`."""
    fields = dict(said)
    name, scopes, owner = fields.pop("name", ""), fields.pop("scopes", None), fields.pop("owner", None)
    quotas = Quotas.read(fields.pop("quotas", None) or {})
    if fields:
        raise Unacceptable(f"field {shown(min(fields))} is unknown: a key has name, scopes, owner, quotas")
    if not isinstance(name, str) or len(name) > 200:
        raise Unacceptable(f"name is {shown(name)}: a string of up to 200 characters is accepted")
    if not isinstance(scopes, list) or not scopes or not all(isinstance(s, str) and s in SCOPES for s in scopes):
        raise Unacceptable(f"scopes is {shown(scopes)}: a list of {', '.join(SCOPES)} is accepted")
    if (owner is None) == (OWNER in scopes) or (OWNER in scopes and ADMIN in scopes):
        raise Unacceptable("the scope owner and the field owner go together, and not with admin")
    if owner is not None:
        try:
            owner = read_name("owner", owner)
        except EventError as error:
            raise Unacceptable(str(error)) from None
    made = datetime.now(UTC).isoformat()
    return Key(secrets.token_hex(6), name, tuple(sorted(set(scopes))), owner, quotas, made)


def _kept(body: str) -> Key:
    fields = json.loads(body)
    return Key(**fields | {"scopes": tuple(fields["scopes"]), "quotas": Quotas(**fields["quotas"])})
