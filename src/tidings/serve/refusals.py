"""Why a request is not served: a status, one sentence, and what may be read beside it (RFC 9457 calls it a problem)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    status = 400
    title = "Bad request"

    def __init__(self, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members


class Unauthorized(Refusal):
    status, title = 401, "No key, or not a valid one"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(Refusal):
    status, title = 403, "Not allowed"


class NotFound(Refusal):
    status, title = 404, "Not there"


class Conflict(Refusal):
    status, title = 409, "Conflict"


class Gone(Refusal):
    status, title = 410, "Gone"


class TooLarge(Refusal):
    status, title = 413, "Too large"


class NotReadable(Refusal):
    status, title = 415, "A form that is not read"


class Unacceptable(Refusal):
    status, title = 422, "Not accepted"


class TooMany(Refusal):
    status, title = 429, "Too many"

    def __init__(self, detail: str, retry_after: float, **members: Any) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, round(retry_after)))}, **members)


class NotReady(Refusal):
    status, title = 503, "Not now"

    def __init__(self, detail: str, retry_after: float = 1) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, round(retry_after)))})


class NoRoom(Refusal):
    status, title = 507, "No room on the disk"
