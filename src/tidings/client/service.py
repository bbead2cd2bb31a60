"""A service and its topics, waited for: `td.connect(url)["deals"]` has the calls of `Topic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.client import calls
from tidings.client.connection import Connection
from tidings.client.remote_topic import RemoteTopic
from tidings.model.values.schema import Schema


class Service(Connection):
    """A service at `url`; `key` is what `tidings keys` gave. Threads may share it.

    >>> import tidings as td
    >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
    >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
    >>> "ann" in service["deals"]
    False
    >>> service.drop("deals"); service.close()
    """

    def topics(self) -> list[dict[str, Any]]:
        """What there is: name, schema, key, settings and size of each.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> [topic["name"] for topic in service.topics()]
        ['deals']
        >>> service.drop("deals"); service.close()
        """
        return self.do(calls.topics())

    def make(
        self,
        name: str,
        schema: Schema | Mapping[str, Any],
        *,
        key: str | None = None,
        retention: str | None = None,
        clock: str = "wall",
    ) -> RemoteTopic:
        """Make a topic, or take one that is there with this schema and key.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> deals.key, list(deals.schema)
        (None, ['price'])
        >>> service.drop("deals"); service.close()
        """
        self.do(calls.make(name, schema, {"key": key, "retention": retention, "clock": clock}))
        return self[name]

    def drop(self, name: str) -> None:
        """Drop a topic and all that is in it.

        >>> import tidings as td
        >>> service = td.connect(url)  # of `tidings serve`, as "http://127.0.0.1:8080"
        >>> deals = service.make("deals", {"price": td.Number()}, clock="given")
        >>> service.drop("deals")
        >>> service.topics()
        []
        >>> service.close()
        """
        self.do(calls.TopicCalls(name).drop())

    def __getitem__(self, name: str) -> RemoteTopic:
        return RemoteTopic(self, name)

    def close(self) -> None:
        """Let go of the connections.

        >>> import tidings as td
        >>> service = td.connect(url)
        >>> service.close()
        """
        self.http.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tidings at {self.url}>"
