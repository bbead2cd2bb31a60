"""The page and its files, with what a browser may do with them.

Nothing comes from elsewhere and nothing runs that is not a file of ours (`POLICY`); where tiles of a map are set, their server's
images alone are let in. The files are read once, when the service starts, and are answered without a key: they are the same for
everybody and know nothing. What they ask for, the API answers to keys.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tidings.console.coasts import Bounds, written_lines
from tidings.errors import TidingsError, shown

FOLDER = Path(__file__).parent / "page"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'{tiles}; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
GUARDS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"}


def install(app: FastAPI, open: bool, tiles: str | None) -> None:
    """Serve the page at `/` and its files under `/console/`; `tiles` is an address with {z}, {x} and {y}."""
    files = {path.name: path for path in FOLDER.iterdir() if path.suffix in KINDS}
    policy = POLICY.format(tiles="" if tiles is None else f" {origin_of(tiles)}")
    answers = {name: (path.read_bytes(), KINDS[path.suffix]) for name, path in files.items()}
    tags = {name: f'"{hashlib.sha256(body).hexdigest()[:20]}"' for name, (body, _) in answers.items()}
    settings = json.dumps({"open": open, "tiles": tiles}).encode()

    def given(request: Request, name: str) -> Response:
        if name not in answers:
            raise HTTPException(404)
        headers = GUARDS | {"Content-Security-Policy": policy, "Cache-Control": "no-cache", "ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        body, kind = answers[name]
        return Response(body, headers=headers, media_type=f"{kind}; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return given(request, "index.html")

    @app.get("/console/settings", include_in_schema=False)
    async def told() -> Response:
        return Response(settings, headers=GUARDS, media_type="application/json")

    @app.get("/console/land", include_in_schema=False)
    async def land(west: float, south: float, east: float, north: float) -> Response:
        body = await run_in_threadpool(written_lines, Bounds(west, south, east, north))
        return Response(body, headers=GUARDS | {"Cache-Control": "max-age=86400"}, media_type="application/json")

    @app.get("/console/{name}", include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        return given(request, name)


def origin_of(tiles: str) -> str:
    """The server of an address of tiles, for the policy."""
    parts = urlsplit(tiles)
    missing = any(f"{{{name}}}" not in tiles for name in "zxy")
    if parts.scheme not in ("http", "https") or not parts.hostname or missing or any(c in parts.netloc for c in " ;,'\""):
        raise TidingsError(f"tiles is {shown(tiles)}: an address as https://tiles.example.org/{{z}}/{{x}}/{{y}}.png is accepted")
    return f"{parts.scheme}://{parts.netloc}"
