"""Who asks, and what that one may do.

| scope     | may                                                                                     |
|-----------|-----------------------------------------------------------------------------------------|
| `admin`   | everything                                                                              |
| `publish` | publish events, and advance the clock                                                    |
| `read`    | read topics, subscriptions, events and notifications; match and explain                  |
| `owner`   | see and change its own subscriptions, notifications, consumers and sinks; nobody else's  |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidings.serve.access.quotas import Quotas
from tidings.serve.refusals import Forbidden

ADMIN, PUBLISH, READ, OWNER = "admin", "publish", "read", "owner"
SCOPES = (ADMIN, PUBLISH, READ, OWNER)


@dataclass(frozen=True, slots=True)
class Caller:
    """`owner` is whose things an owner's caller has; None for everybody's."""

    id: str
    scopes: frozenset[str]
    owner: str | None = None
    quotas: Quotas = field(default_factory=Quotas)

    def may(self, scope: str) -> bool:
        return ADMIN in self.scopes or scope in self.scopes

    def must(self, *scopes: str) -> None:
        """Refuse unless it has one of the scopes."""
        if not any(self.may(scope) for scope in scopes):
            raise Forbidden(f"this needs the scope {' or '.join(scopes)}: key {self.id!r} has {', '.join(sorted(self.scopes))}")

    def owns(self) -> str | None:
        """The owner to whose things this caller is kept; None if it may see all."""
        return None if self.may(READ) else self.owner

    def changes(self) -> str | None:
        """The owner whose things alone it may change; None if it may change all."""
        return None if self.may(ADMIN) else self.owner


EVERYBODY = Caller("open", frozenset({ADMIN}))
