"""What Spark keeps of a shard between micro-batches: a head, and a log of changes.

    head     the caller's facts, and {first, next, written, packed}, as JSON
    log      number -> the changes of a batch, as bytes; numbers first .. next - 1, the later ones hold

A batch adds one entry. When the entries since the last packing outweigh it by SLACK bytes, the caller gives everything anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

SLACK = 1_000_000


class ShardLog:
    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "body string")
        self._log = handle.getMapState("log", "number long", "body binary")
        self._facts: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """The head of the key at hand; empty for one that is new."""
        body = self._head.get() if self._head.exists() else None
        self._facts = {"first": 0, "next": 0, "written": 0, "packed": 0} | ({} if body is None else json.loads(body[0]))
        return self._facts

    def entries(self) -> list[bytes]:
        """Oldest first."""
        if not self._facts["next"]:
            return []
        found = {int(number[0]): bytes(body[0]) for number, body in self._log.iterator()}
        return [found[number] for number in sorted(found)]

    def append(self, body: bytes) -> None:
        self._log.updateValue((self._facts["next"],), (body,))
        self._facts["next"] += 1
        self._facts["written"] += len(body)

    @property
    def heavy(self) -> bool:
        return bool(self._facts["written"] > self._facts["packed"] + SLACK)

    def pack(self, bodies: Iterable[bytes]) -> None:
        """Everything anew, in place of the log."""
        for number in range(self._facts["first"], self._facts["next"]):
            self._log.removeKey((number,))
        self._facts |= {"first": self._facts["next"], "written": 0}
        for body in bodies:
            self.append(body)
        self._facts |= {"packed": self._facts["written"], "written": 0}

    def save(self, **facts: Any) -> None:
        self._facts |= facts
        self._head.update((json.dumps(self._facts),))
