"""Why a request was not served, as RFC 9457 says it: the engine's own sentence under `detail`. The one place that catches all."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tidings.errors import BulkError, StorageError, TidingsError, UnknownAttributeError
from tidings.serve.hosting.lanes import Busy
from tidings.serve.refusals import NoRoom, NotReady, Refusal, Unacceptable

PROBLEM = "application/problem+json"
SHOWN = 1000
"""Most refused rows that an answer names."""
log = logging.getLogger("tidings.serve")


def install(app: FastAPI) -> None:
    app.add_exception_handler(Refusal, answered)
    app.add_exception_handler(TidingsError, answered)
    app.add_exception_handler(Busy, answered)
    app.add_exception_handler(OSError, answered)
    app.add_exception_handler(sqlite3.Error, answered)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _failed)


def problem(request: Request, refusal: Refusal) -> Response:
    return _said(request, refusal.status, refusal.title, refusal.detail, refusal.headers, **refusal.members)


def refusal_of(error: Exception) -> Refusal | None:
    """What an error of the engine is to whoever asked; None if it is ours."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, Busy):
        return NotReady(f"{error}: try again in a moment")
    if isinstance(error, BulkError):
        rows = [{"row": row, "detail": sentence} for row, sentence in error.rows[:SHOWN]]
        return Unacceptable(
            f"{len(error.rows)} rows were refused and nothing was applied: {error.rows[0][1]}", kind="BulkError", rows=rows
        )
    if any(_is_full(cause) for cause in _causes(error)):
        return NoRoom("the disk is full: nothing was applied; questions are still answered")
    if isinstance(error, StorageError) or not isinstance(error, TidingsError):
        return None
    named: dict[str, Any] = {"attribute": error.attribute} if isinstance(error, UnknownAttributeError) else {}
    return Unacceptable(str(error), kind=type(error).__name__, **named)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_full(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


async def answered(request: Request, error: Exception) -> Response:
    """What became of a request that raised."""
    refusal = refusal_of(error)
    return await _failed(request, error) if refusal is None else problem(request, refusal)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("query", "body", "path"))
    return problem(request, Unacceptable(f"{where}: {first['msg']}"))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    return _said(request, error.status_code, title, f"{request.method} {request.url.path}: {error.detail}", error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    log.error("request failed", exc_info=error, extra={"path": request.url.path, "request": request.scope.get("request_id")})
    return _said(request, 500, "Failed", "the service failed at this request; its log says why")


def _said(request: Request, status: int, title: str, detail: str, headers: Any = None, **members: Any) -> Response:
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    instance = request.scope.get("request_id")
    if instance is not None:
        content["instance"] = f"/requests/{instance}"
    return Response(orjson.dumps(content), status, dict(headers or {}), PROBLEM)
