"""A client of event streams, as small as the standard lets one be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass
class Said:
    """One Server-Sent Event; `data` None when only the id was said."""

    kind: str
    id: str
    data: Any


def said(response: httpx.Response) -> Iterator[Said]:
    kind, id, data = "message", "", []
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            kind = value
        elif field == "id":
            id = value
        elif field == "data":
            data.append(value)
        elif not line:
            yield Said(kind, id, json.loads("\n".join(data)) if data else None)
            kind, data = "message", []


def listen(client: httpx.Client, topic: str, last: str | None = None, **query: Any) -> Any:
    """The stream, as a context that gives the response."""
    headers = {"accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
    return client.stream("GET", f"/topics/{topic}/notifications", params=query, headers=headers, timeout=30)


def take(client: httpx.Client, count: int, last: str | None = None, topic: str = "deals", **query: Any) -> list[Said]:
    """The first notifications of a stream."""
    found: list[Said] = []
    with listen(client, topic, last, **query) as response:
        assert response.status_code == 200, response.read()
        for each in said(response):
            if each.kind == "notification":
                found.append(each)
                if len(found) == count:
                    break
    return found
