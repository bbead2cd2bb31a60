"""What goes out: JSON by default; NDJSON or an Arrow stream for what is many, if the request accepts it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from tidings.match.answers.results import Match, Notification

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"


class JsonAnswer(Response):
    """JSON without headers of its own: the framework's way to two headers costs more than many an answer."""

    def __init__(self, content: Any, status: int) -> None:
        self.body = orjson.dumps(content)
        self.status_code = status
        self.background = None
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]


def json_answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JsonAnswer(content, status) if headers is None else Response(orjson.dumps(content), status, headers, JSON)


def wanted(request: Request) -> str:
    """The form in which many rows are to be given."""
    accept = request.headers.get("accept", "")
    return ARROW if ARROW in accept else NDJSON if NDJSON in accept else JSON


def rows_answer(
    request: Request, name: str, rows: Iterable[dict[str, Any]], table: Callable[[], pa.Table] | None = None, **more: Any
) -> Response:
    """Rows under `name` beside `more`, or alone as lines or columns, which `table` makes."""
    form = wanted(request)
    if form == ARROW:
        return Response(stream_bytes(pa.Table.from_pylist(list(rows)) if table is None else table()), media_type=ARROW)
    if form == NDJSON:
        return Response(b"".join(orjson.dumps(row) + b"\n" for row in rows), media_type=NDJSON)
    return json_answer({name: list(rows), **more})


def stream_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    done: bytes = sink.getvalue().to_pybytes()
    return done


def match_json(match: Match) -> dict[str, Any]:
    return {"event": match.event, "subscription": match.subscription, "score": match.score}


def notification_json(note: Notification) -> dict[str, Any]:
    said: dict[str, Any] = {
        "id": note.id,
        "subscription": note.subscription,
        "event": note.event,
        "score": note.score,
        "rank": note.rank,
        "why": note.why,
        "at": note.at.isoformat(),
    }
    return said | {"digest": note.digest} if note.digest else said
