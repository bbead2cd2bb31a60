"""The service's own record, `service.sqlite` in its folder: what is not a topic's.

| table      | a row is                                                                         |
|------------|----------------------------------------------------------------------------------|
| `setting`  | a topic's settings: retention                                                     |
| `consumer` | a named reader of notifications: what it hears, and how far it has acknowledged   |
| `sink`     | where notifications are sent: kind, settings, secrets, state, how far it is       |
| `letter`   | a notification that a sink did not take, until it is sent again or forgotten      |
| `key`      | an API key: its hash, scope, owner and quotas                                     |

One connection, threads take turns. A change is acknowledged after its commit, as in a topic's registry.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidings.errors import StorageError
from tidings.match.store.array_files import private

LEDGER = "service.sqlite"
FORMAT = 1
TABLES = """
CREATE TABLE IF NOT EXISTS setting (topic TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (topic, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS consumer (
    topic TEXT, name TEXT, subscription TEXT, owner TEXT, cursor INTEGER NOT NULL, PRIMARY KEY (topic, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sink (
    topic TEXT, name TEXT, owner TEXT, settings TEXT NOT NULL, secrets TEXT NOT NULL, state TEXT NOT NULL, cursor INTEGER NOT NULL,
    PRIMARY KEY (topic, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, sink TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    reason TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS letter_sink ON letter (topic, sink, number);
CREATE TABLE IF NOT EXISTS key (id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, body TEXT NOT NULL) WITHOUT ROWID;
"""


class Ledger:
    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER
        self._turn = threading.RLock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.path.exists():
                private(self.path, "xb").close()
            self._db = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            for pragma in ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL"):
                self._db.execute(f"PRAGMA {pragma}")
            [(format,)] = self._db.execute("PRAGMA user_version")
            if format > FORMAT:
                raise StorageError(f"{self.path} has format {format}; this version of tidings reads up to format {FORMAT}")
            self._db.executescript(f"{TABLES} PRAGMA user_version = {FORMAT};")
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"cannot open the ledger {self.path}: {error}") from error

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with self._turn:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise StorageError(f"the ledger {self.path} did not take the change: {error}") from error
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._turn:
            try:
                return self._db.execute(query, parameters).fetchall()
            except sqlite3.Error as error:
                raise StorageError(f"the ledger {self.path} cannot be read: {error}") from error

    def version(self) -> int:
        """Another number whenever another process has committed something."""
        [(number,)] = self.read("PRAGMA data_version")
        return int(number)

    def settings(self, topic: str) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in self.read("SELECT name, value FROM setting WHERE topic = ?", topic)}

    def set(self, topic: str, **values: Any) -> None:
        with self.change() as db:
            rows = [(topic, name, json.dumps(value)) for name, value in values.items()]
            db.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?, ?)", rows)

    def forget(self, topic: str) -> None:
        with self.change() as db:
            for table in ("setting", "consumer", "sink", "letter"):
                db.execute(f"DELETE FROM {table} WHERE topic = ?", (topic,))

    def close(self) -> None:
        with self._turn:
            self._db.close()
