"""A request whose headers are looked up by name, not searched for each time they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope


class NamedHeaders(Headers):
    """The first of each name, as the framework's own gives it."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._list = list(raw)
        self._named = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self._list)}

    def get(self, key: str, default: Any = None) -> Any:
        return self._named.get(key, default)

    def __getitem__(self, key: str) -> str:
        return self._named[key.lower()]

    def __contains__(self, key: object) -> bool:
        return key in self._named


class QuickRequest(Request):
    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self._headers = NamedHeaders(scope["headers"])
