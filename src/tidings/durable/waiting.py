"""Notifications that wait, as the registry keeps them: few of one commit a row each, many as one Arrow stream.

| table          | a row is                                                                                        |
|----------------|-------------------------------------------------------------------------------------------------|
| `outbox`       | a notification: its number, its stable id, its fields as JSON                                   |
| `outbox_batch` | those numbered `first` to `last`: (subscription, event, score, rank, why, at, owner) as columns |

Numbers are of one sequence. A batch stays whole until all of it may be forgotten; `forgotten` in `meta` is the number up to which
it is as if it were gone. The id of what stands in a batch is made when it is read. Rows refuse an id that waits already, as when
an event is published again at the same instant; a batch is only written where none of its events was live before, and a repeat
of one that was not live any more waits twice, with one id.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidings._lazy import lazily
from tidings.durable.registry import Registry, crc_of, set_meta
from tidings.errors import StorageError
from tidings.match.answers.notifications import Notifications
from tidings.match.answers.results import Notification

pc = lazily("pyarrow.compute")

FEWEST = 64
"""Notifications of one commit from which on they are kept together."""
LARGEST = 8192
"""Of one batch: whoever reads a page reads a batch."""
SUFFIX = b"suffix"
FORGOTTEN = "forgotten"
_KEPT = 4
"""Batches that a reader keeps as they were read."""
_OF = {"subscription": "json_extract(body, '$[0]')", "owner": "json_extract(body, '$[6]')"}
OwnerOf = Callable[[str], str | None]


class Waiting(NamedTuple):
    """A notification in the outbox. `id` is stable; `owner` is the subscription's when it was told; `digest` is its list."""

    number: int
    id: str
    subscription: str
    event: str
    score: float
    rank: int | None
    why: str
    at: str
    owner: str | None
    digest: list[dict[str, Any]] | None = None
    body: Mapping[str, Any] | None = None


def put_notes(
    db: sqlite3.Connection, notes: Sequence[Notification], keyed: bool, owner_of: OwnerOf | None, again: bool, limit: int | None
) -> None:
    """`again` if one of the events may have been told of before; with a `limit` the newest so many are kept.

    An object may change twice in one instant, and both changes are news; an event enters a list once.
    """
    if not notes:
        return
    suffix = f"-{secrets.token_hex(4)}" if keyed else ""
    if len(notes) >= FEWEST and not again and isinstance(notes, Notifications) and notes.in_columns:
        _put_batches(db, notes.table(), suffix, owner_of)
    else:
        owner = (lambda _: None) if owner_of is None else owner_of
        fields = [(n, [*n[:5], n.at.isoformat()], owner(n.subscription)) for n in notes]
        bodies = [(n.id + suffix, json.dumps(_kept(told, of, n.body))) for n, told, of in fields]
        due = [(id, body, crc_of(body)) for id, body in bodies]
        db.executemany("INSERT OR IGNORE INTO outbox (id, body, crc) VALUES (?, ?, ?)", due)
    if limit is not None:
        forget(db, newest(db) - limit)


def _kept(told: list[Any], owner: str | None, body: Mapping[str, Any] | None) -> list[Any]:
    """As a row keeps it; owner and body only where there is one."""
    if body is not None:
        return [*told, owner, body]
    return told if owner is None else [*told, owner]


def _put_batches(db: sqlite3.Connection, table: pa.Table, suffix: str, owner_of: OwnerOf | None) -> None:
    if owner_of is not None:
        names = pc.dictionary_encode(table["subscription"].combine_chunks())
        owners = pa.array([owner_of(name) for name in names.dictionary.to_pylist()], pa.string())
        table = table.append_column("owner", owners.take(names.indices))
    table, number = table.replace_schema_metadata({SUFFIX: suffix}), newest(db)
    for first in range(0, len(table), LARGEST):
        some, sink = table.slice(first, LARGEST), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, some.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(some)
        body = sink.getvalue().to_pybytes()
        db.execute(
            "INSERT INTO outbox_batch (first, last, body, crc) VALUES (?, ?, ?, ?)",
            (number + 1, number + len(some), body, crc_of(body)),
        )
        number += len(some)
    if not db.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'outbox'", (number,)).rowcount:
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?)", (number,))


def newest(db: sqlite3.Connection) -> int:
    """The highest number that was ever given."""
    given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return 0 if given is None else int(given[0])


def forget(db: sqlite3.Connection, number: int) -> None:
    """Whatever is numbered up to `number` waits no longer."""
    if number > 0:
        db.execute("DELETE FROM outbox WHERE number <= ?", (number,))
        db.execute("DELETE FROM outbox_batch WHERE last <= ?", (number,))
        if db.execute("SELECT 1 FROM outbox_batch WHERE first <= ?", (number,)).fetchone() is not None:
            set_meta(db, **{FORGOTTEN: number})


class OutboxPages:
    """Reads what waits, a page at a time, in the order of numbers."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._read: OrderedDict[int, pa.Table] = OrderedDict()

    def ends(self) -> tuple[int, int]:
        """The last number that is gone, and the newest ever given."""
        read = self._registry.read
        [(last,)] = read("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'")
        [(row,)] = read("SELECT ifnull(min(number), ?) FROM outbox", last + 1)
        batch = min((first for first, _ in self._batches(0, last)), default=last + 1)
        return max(min(row, batch) - 1, self._forgotten()), last

    def _forgotten(self) -> int:
        found = self._registry.read("SELECT value FROM meta WHERE name = ?", FORGOTTEN)
        return int(found[0][0]) if found else 0

    def _batches(self, after: int, upto: int) -> list[tuple[int, int]]:
        """(first, last) of those that reach above `after`; a registry of an earlier format has none."""
        if not self._registry.has("outbox_batch"):
            return []
        found = self._registry.read(
            "SELECT first, last FROM outbox_batch WHERE last > ? AND first <= ? ORDER BY first", after, upto
        )
        return [(first, last) for first, last in found]

    def after(
        self, number: int, limit: int, *, subscription: str | None = None, owner: str | None = None, upto: int | None = None
    ) -> list[Waiting]:
        """The first `limit` numbered above `number` (and up to `upto`), of one subscription or one owner if that is said."""
        last = 2**63 - 1 if upto is None else upto
        said = {"subscription": subscription, "owner": owner}
        wanted = {name: value for name, value in said.items() if value is not None}
        with self._registry.reading():
            found = self._rows(number, last, limit, wanted)
            number = max(number, self._forgotten())
            for first, end in self._batches(number, last):
                if limit <= 0 or (len(found) >= limit and found[limit - 1].number < first):
                    break
                found = sorted([*found, *self._of_batch(first, end, number, last, limit, wanted)])[:limit]
        return found

    def _rows(self, after: int, upto: int, limit: int, wanted: Mapping[str, str]) -> list[Waiting]:
        tests = ["number > ?", "number <= ?", *(f"{_OF[name]} = ?" for name in wanted)]
        rows = self._registry.sound(
            "outbox", "id, body", f"WHERE {' AND '.join(tests)} ORDER BY number LIMIT ?", after, upto, *wanted.values(), limit
        )
        return [_of_row(*row) for row in rows]

    def _of_batch(self, first: int, last: int, after: int, upto: int, limit: int, wanted: Mapping[str, str]) -> Iterator[Waiting]:
        table = self._table(first)
        keep = np.arange(max(after + 1 - first, 0), min(upto, last) + 1 - first)
        for name, value in wanted.items():
            if name not in table.column_names:
                return
            same = pc.fill_null(pc.equal(table[name], value), False).to_numpy(zero_copy_only=False)
            keep = keep[same[keep]]
        keep = keep[:limit]
        suffix = (table.schema.metadata or {}).get(SUFFIX, b"").decode()
        for place, said in zip(keep.tolist(), table.take(keep).to_pylist(), strict=True):
            owner = said.pop("owner", None)
            note = Notification(**said)
            yield Waiting(first + place, note.id + suffix, *note[:5], note.at.isoformat(), owner)

    def _table(self, first: int) -> pa.Table:
        """What is written once never changes."""
        if first not in self._read:
            [(_, body)] = self._registry.bodies("outbox_batch", "WHERE first = ?", first)
            try:
                self._read[first] = pa.ipc.open_stream(body).read_all()
            except pa.ArrowException as error:
                raise StorageError(f"the registry {self._registry.path} is damaged: outbox_batch ({error})") from error
            if len(self._read) > _KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(first)
        return self._read[first]


def _of_row(number: int, id: str, body: str) -> Waiting:
    fields: list[Any] = json.loads(body)
    subscription, event, score, rank, why, at = fields[:6]
    owner, told = fields[6] if len(fields) > 6 else None, fields[7] if len(fields) > 7 else None
    digest = told.get("digest") if told is not None and why == "digest" else None
    return Waiting(number, id, subscription, event, score, rank, why, at, owner, digest, told)
