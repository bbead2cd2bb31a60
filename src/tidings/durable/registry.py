"""The record of a durable topic: one SQLite file in WAL mode. Everything else on disk is derived from it.

| table          | a row is                                                                                           |
|----------------|----------------------------------------------------------------------------------------------------|
| `meta`         | a setting: name, schema, key, format                                                               |
| `subscription` | a subscription set one at a time: its record as JSON, `seq` of its last change                     |
| `chunk`        | a bulk load: the accepted rows as an Arrow IPC stream, `seq` of the load                           |
| `gone`         | the last removal (or replacement) of an id: a chunk's row is live if no later `seq` stands here    |
| `event`        | a live event: its record as JSON, `time` and `expires` in microseconds                             |
| `event_batch`  | live events that came together, as an Arrow stream; `event_gone`: those replaced (`event_batches`) |
| `outbox`       | a notification with a stable id, until it is acknowledged                                          |
| `outbox_batch` | many notifications of one commit, as an Arrow stream (`waiting`)                                   |
| `taken`        | an event that a hearing topic (`outbox`) took: how many were told, and its record while one waits  |
| `consumer`     | who reads the outbox by a name of his own: the last number that he is done with                    |
| `state`        | a subscription's window, or any other named state that must survive, as bytes                      |

A batch of changes is one transaction and has one sequence number. A change is acknowledged only after its commit.
`synchronous=FULL`, so a commit survives power loss as far as the disk keeps its word. Threads of one process take turns; a forked
child is refused, since SQLite's connection does not outlive a fork. `crc` beside a body is its CRC-32, checked when it is read.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tidings.errors import StorageError, StorageWarning
from tidings.match.store.array_files import private

REGISTRY = "registry.sqlite"
FORMAT = 5
READABLE = (1, 2, 3, 4, 5)
"""Format 1 has no check sums beside bodies; format 2 no consumers, and subscriptions without tags and circles; format 3
no groups, calendars or paces; format 4 a row for every live event and every notification."""
TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscription (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, body TEXT NOT NULL, crc INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS subscription_seq ON subscription (seq);
CREATE TABLE IF NOT EXISTS chunk (seq INTEGER PRIMARY KEY, rows INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS gone (id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS gone_seq ON gone (seq);
CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, expires INTEGER, body TEXT NOT NULL, crc INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_expires ON event (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS event_batch (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, until INTEGER, gone INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER
);
CREATE TABLE IF NOT EXISTS event_gone (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS outbox_batch (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER);
CREATE TABLE IF NOT EXISTS outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, crc INTEGER
);
CREATE TABLE IF NOT EXISTS taken (
    number INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL UNIQUE, told INTEGER NOT NULL, last INTEGER NOT NULL, body TEXT
);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, body BLOB NOT NULL, crc INTEGER) WITHOUT ROWID;
"""
CONSUMERS = "CREATE TABLE IF NOT EXISTS consumer (name TEXT PRIMARY KEY, done INTEGER NOT NULL) WITHOUT ROWID"
CHECKED = {
    "subscription": "id",
    "chunk": "seq",
    "event": "id",
    "event_batch": "first",
    "state": "name",
    "outbox": "number",
    "outbox_batch": "first",
}
"""The tables whose bodies have check sums, and what names a row."""
SINCE_5 = ("event_batch", "event_gone", "outbox_batch")
"""Tables that an older registry has not, until somebody writes to it."""


class Registry:
    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        self.readonly = readonly
        self.closed = False
        self._turn = threading.RLock()
        self._process = os.getpid()
        try:
            if not readonly and not path.exists():
                private(path, "xb").close()
            self._db = _connected(path, readonly)
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"cannot open the registry {path}: {error}") from error
        try:
            if not readonly:
                self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.executescript(TABLES + CONSUMERS)
                for table in CHECKED:
                    if not self._has_sums(table):
                        self._db.execute(f"ALTER TABLE {table} ADD COLUMN crc INTEGER")
            self._summed = {table for table in CHECKED if table in SINCE_5 or self._has_sums(table)}
        except sqlite3.Error as error:
            self._db.close()
            raise StorageError(f"cannot open the registry {path}: {error}") from error

    def _has_sums(self, table: str) -> bool:
        return any(column == "crc" for _, column, *_ in self._db.execute(f"PRAGMA table_info({table})"))

    @property
    def forked(self) -> bool:
        return os.getpid() != self._process

    def _must_be_ours(self) -> None:
        if self.closed:
            raise StorageError(f"{self.path.parent} was closed: open it again")
        if self.forked:
            raise StorageError(
                f"{self.path.parent} was opened by process {self._process}, of which this one was forked: open it again here"
            )

    def must_be_writable(self) -> None:
        self._must_be_ours()
        if self.readonly:
            raise StorageError(f"{self.path.parent} was opened with mode='r': it can be read, not changed")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One batch of changes: all of it is committed when the block ends, none of it when the block raises."""
        self.must_be_writable()
        with self._turn, self._committed(self._db):
            yield self._db

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is changed in the block is one commit; each `transaction` in it stands or falls by itself."""
        with self.transaction():
            yield

    @contextmanager
    def beside_the_writer(self) -> Iterator[sqlite3.Connection]:
        """The same where the topic was opened to read, for what does not concern the writer's memory: the outbox."""
        if not self.readonly:
            with self.transaction() as db:
                yield db
            return
        self._must_be_ours()
        try:
            db = _connected(self.path, readonly=False)
        except sqlite3.Error as error:
            raise StorageError(f"the registry {self.path} cannot be written: {error}") from error
        with closing(db), self._committed(db):
            db.execute(CONSUMERS)
            yield db

    @contextmanager
    def _committed(self, db: sqlite3.Connection) -> Iterator[None]:
        inside, done = db.in_transaction, False
        try:
            db.execute("SAVEPOINT one" if inside else "BEGIN IMMEDIATE")
            yield
            db.execute("RELEASE one" if inside else "COMMIT")
            done = True
        except sqlite3.Error as error:
            raise StorageError(f"the registry {self.path} did not take the change, nothing was applied: {error}") from error
        finally:
            # A full disk may have ended the transaction already.
            if not done and db.in_transaction:
                for undo in ("ROLLBACK TO one", "RELEASE one") if inside else ("ROLLBACK",):
                    db.execute(undo)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything read in the block is of one state, that of its beginning, whatever another process writes meanwhile."""
        with self._turn:
            self._must_be_ours()
            if self._db.in_transaction:
                yield
                return
            self.read("BEGIN")
            try:
                self.read("SELECT count(*) FROM meta")
                yield
            finally:
                self._db.execute("ROLLBACK")

    def has(self, table: str) -> bool:
        return self.read("SELECT count(*) FROM sqlite_master WHERE name = ?", table) != [(0,)]

    def bodies(self, table: str, rest: str = "", *parameters: Any) -> list[tuple[Any, Any]]:
        """(name, body) of the rows of a table, each with the check sum that it was written with.

        A window's state can begin anew, so one that is damaged is left out with a warning; what else is damaged is an error.
        """
        return [] if table in SINCE_5 and not self.has(table) else self.sound(table, "body", rest, *parameters)

    def sound(self, table: str, fields: str, rest: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """What names a row and some fields, of which `body` is the last; as `bodies`."""
        sums = "crc" if table in self._summed else "NULL"
        rows = self.read(f"SELECT {CHECKED[table]}, {fields}, {sums} FROM {table} {rest}", *parameters)
        sound = [row[:-1] for row in rows if is_sound(*row[-2:])]
        if len(sound) < len(rows):
            damaged = next(row[0] for row in rows if not is_sound(*row[-2:]))
            said = f"the registry {self.path} is damaged: {table} {damaged!r} has not the check sum it was written with"
            if table != "state":
                raise StorageError(f"{said}; restore it from a backup")
            warnings.warn(f"{said}; that window begins anew", StorageWarning, stacklevel=2)
        return sound

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self._must_be_ours()
        try:
            with self._turn:
                return self._db.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"the registry {self.path} cannot be read: {error}") from error

    def meta(self) -> dict[str, Any]:
        try:
            return {name: json.loads(value) for name, value in self.read("SELECT name, value FROM meta")}
        except (ValueError, TypeError) as error:
            raise StorageError(f"the registry {self.path} is damaged: meta ({error}); restore it from a backup") from None

    def last_seq(self) -> int:
        """The newest sequence number that any change carries."""
        newest = [self.read(f"SELECT max(seq) FROM {table}")[0][0] or 0 for table in ("subscription", "chunk", "gone")]
        seq: int = max(self.meta().get("seq", 0), *newest)
        return seq

    def version(self) -> int:
        """Another number whenever another process has committed something."""
        [(number,)] = self.read("PRAGMA data_version")
        return int(number)

    def shrink(self) -> None:
        """Give pages that nothing uses back to the disk; who only reads leaves that to the writer."""
        with self._turn:
            if not self.readonly:
                self._db.executescript("PRAGMA incremental_vacuum")

    def close(self) -> None:
        if not self.forked:
            self.closed = True
            self._db.close()


def _connected(path: Path, readonly: bool) -> sqlite3.Connection:
    db = sqlite3.connect(_address(path, readonly), uri=True, check_same_thread=False, isolation_level=None)
    try:
        db.execute("PRAGMA busy_timeout = 10000")
        if not readonly:
            db.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        db.close()
        raise
    return db


def crc_of(body: str | bytes) -> int:
    return zlib.crc32(body.encode() if isinstance(body, str) else body)


def is_sound(body: object, crc: int | None) -> bool:
    """Whether a body is as it was written. A damaged row may hold anything; one of format 1 has no sum."""
    return isinstance(body, str | bytes) and (crc is None or crc == crc_of(body))


def _address(path: Path, readonly: bool) -> str:
    """Where nothing may be written, SQLite cannot make the files that readers beside a writer need; nor can there be a writer."""
    writable = os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    alone = readonly and not writable and not path.with_name(path.name + "-wal").exists()
    return f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}{'&immutable=1' if alone else ''}"


def set_meta(db: sqlite3.Connection, **values: Any) -> None:
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, json.dumps(value)) for name, value in values.items()])


def put_subscriptions(db: sqlite3.Connection, seq: int, records: Iterable[tuple[str, str]]) -> None:
    rows = [(id, seq, body, crc_of(body)) for id, body in records]
    db.executemany("INSERT OR REPLACE INTO subscription (id, seq, body, crc) VALUES (?, ?, ?, ?)", rows)


def put_chunk(db: sqlite3.Connection, seq: int, rows: int, body: bytes) -> None:
    db.execute("INSERT INTO chunk (seq, rows, body, crc) VALUES (?, ?, ?, ?)", (seq, rows, body, crc_of(body)))


def put_gone(db: sqlite3.Connection, seq: int, ids: Iterable[str]) -> None:
    """Mark ids as removed or replaced at `seq`."""
    marks = [(id, seq) for id in ids]
    db.executemany("INSERT OR REPLACE INTO gone VALUES (?, ?)", marks)
    db.executemany("DELETE FROM subscription WHERE id = ?", [(id,) for id, _ in marks])
