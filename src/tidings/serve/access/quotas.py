"""How much a key may ask: what is one of a kind is refused by size (413), what is a rate by time (429 with `Retry-After`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tidings.errors import shown
from tidings.serve.refusals import Unacceptable


@dataclass(frozen=True, slots=True)
class Quotas:
    """None is no bound but the service's own. `events` a second; `subscriptions` and `streams` at a time; of one filter `clauses`,
    its `price` (about the values that an event's check may look at) and, of its polygons, `vertices`; `k` of a question or a
    subscription; `bytes` of a request."""

    events: float | None = None
    subscriptions: int | None = None
    streams: int | None = None
    clauses: int | None = None
    price: int | None = None
    vertices: int | None = None
    k: int | None = None
    bytes: int | None = None

    @classmethod
    def read(cls, said: Any) -> Quotas:
        known = [field.name for field in fields(cls)]
        if not isinstance(said, dict):
            raise Unacceptable(f"quotas is {shown(said)}: an object with {', '.join(known)} is accepted")
        for name, value in said.items():
            if name not in known:
                raise Unacceptable(f"quotas.{name} is unknown: quotas are {', '.join(known)}")
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
                raise Unacceptable(f"quotas.{name} is {shown(value)}: a number of 0 or more is accepted")
        return cls(**said)
