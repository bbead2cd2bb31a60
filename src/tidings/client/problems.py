"""What a service refuses becomes the error that a topic in this process would raise, with the same sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidings import errors
from tidings.errors import BulkError, ServiceError, TidingsError, UnknownAttributeError

AGAIN = (429, 502, 503, 504)
"""Statuses after which the same request may do better."""


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> TidingsError:
    said = _said(body)
    sentence = str(said.get("detail") or f"the service answered {status}")
    kind = getattr(errors, str(said.get("kind")), None)
    if kind is BulkError:
        return BulkError("rows", [(row["row"], row["detail"]) for row in said.get("rows", [])])
    if isinstance(kind, type) and issubclass(kind, TidingsError):
        return kind(sentence, said["attribute"]) if kind is UnknownAttributeError else kind(sentence)
    after = headers.get("retry-after", "")
    return ServiceError(sentence, status, float(after) if after.isdigit() else None)


def _said(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
