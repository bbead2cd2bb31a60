"""What OpenAPI says beside what FastAPI sees: bodies of several forms, parameters that hot routes read themselves, problems."""

from __future__ import annotations

from typing import Any

from tidings.serve.app.answers import ARROW, JSON, NDJSON
from tidings.serve.app.problems import PROBLEM

OBJECT: dict[str, Any] = {"type": "object"}
PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "One sentence: what was wrong, and what would be accepted."},
        "kind": {"type": "string", "description": "The engine's error of that name, if it is one."},
        "attribute": {"type": "string", "description": "The attribute that the topic does not have."},
        "instance": {"type": "string", "description": "The request's id, as its log lines have it."},
    },
}
REASONS = {
    400: "The body cannot be read.",
    401: "No key, or not a valid one.",
    403: "The key may not do this.",
    404: "Not there.",
    405: "The method is none of this address's.",
    409: "It is there, and is another.",
    413: "Larger than is accepted.",
    415: "A form that is not read.",
    422: "Not accepted; the sentence says what would be.",
    429: "More than this key may ask.",
    500: "The service failed.",
    503: "Not now: starting, stopping or busy.",
    507: "The disk is full; nothing was applied.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": reason, "content": {PROBLEM: {"schema": PROBLEM_SCHEMA}}} for status, reason in REASONS.items()
}
KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "flag": {"type": "boolean"},
    "whole": {"type": "integer", "minimum": 0},
}


def parameters(**kinds: tuple[str, str]) -> list[dict[str, Any]]:
    """Parameters of the address by name: (kind, description)."""
    return [
        {"name": name, "in": "query", "required": False, "description": said, "schema": KINDS[kind]}
        for name, (kind, said) in kinds.items()
    ]


def body(*forms: str, required: bool = True, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request's body in any of these media types."""
    binary = {"type": "string", "format": "binary"}
    lines = {"type": "string", "description": "One JSON object a line."}
    content = {form: {"schema": binary if form == ARROW else lines if form == NDJSON else schema or OBJECT} for form in forms}
    return {"requestBody": {"required": required, "content": content}}


def gives(description: str, schema: dict[str, Any] | None = None, *, many: bool = False, status: int = 200) -> dict[int | str, Any]:
    """An answer; `many` rows may be had as lines or columns, too."""
    content: dict[str, Any] = {JSON: {"schema": schema or OBJECT}}
    if many:
        content |= {NDJSON: {"schema": {"type": "string"}}, ARROW: {"schema": {"type": "string", "format": "binary"}}}
    return {status: {"description": description, "content": content}}


TIME = {"time": ("text", "The instant at which it happens, ISO 8601 or seconds since 1970; now if it is not given.")}
