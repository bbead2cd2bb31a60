"""Notifications as they come: the lines of a stream of Server-Sent Events, and where to go on after a break."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping

from tidings.client.retrying import Pauses
from tidings.client.wire import EVENTS, Heard, heard_of
from tidings.errors import StorageWarning

QUIET = 60.0
"""Seconds without a line, after which a stream counts as broken: the service says something every fifteen."""


def whose(subscription: str | None, owner: str | None, consumer: str | None) -> dict[str, str]:
    """What is to be heard, as the address says it."""
    named = {"subscription": subscription, "owner": owner, "consumer": consumer}
    return {name: value for name, value in named.items() if value is not None}


class EventLines:
    """Reads lines and remembers the last id, by which the next stream goes on: nothing is missed and nothing comes twice."""

    def __init__(self, after: int | None) -> None:
        self.cursor = after
        self.pauses = Pauses()
        self._id: int | None = None
        self._kind = ""
        self._data: list[str] = []

    def headers(self) -> dict[str, str]:
        """Of the request that opens a stream; what was half read of the one before is forgotten."""
        self._clear()
        going_on: Mapping[str, str] = {} if self.cursor is None else {"Last-Event-ID": str(self.cursor)}
        return {"Accept": EVENTS, **going_on}

    def take(self, line: str) -> Heard | None:
        """The notification that this line completes, if it does."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id" and value.isdigit():
                self._id = int(value)
            elif name == "event":
                self._kind = value
            elif name == "data":
                self._data.append(value)
            return None
        if self._id is not None:
            self.cursor, self.pauses.tries = self._id, 0
        kind, data = self._kind, "\n".join(self._data)
        self._clear()
        if kind == "gap":
            gone = json.loads(data)["gone"]
            warnings.warn(f"notifications up to number {gone} are no longer kept: they were missed", StorageWarning, stacklevel=3)
        return heard_of(json.loads(data)) if kind == "notification" else None

    def _clear(self) -> None:
        self._id, self._kind, self._data = None, "", []
