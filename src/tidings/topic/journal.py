"""Where a topic's changes are committed before they are applied. In memory there is nothing to commit, only to undo (`undo`).

`durable.RegistryJournal` writes the same changes to the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from tidings.match.answers.results import Notification
from tidings.match.store.store import Ids, Store
from tidings.model.door.subscription import Subscription
from tidings.topic.publications import Publications
from tidings.topic.publisher import Publisher

Act = Callable[[Publisher], Sequence[Notification]]
"""A change of a publisher: the same whenever it is done to the same publisher."""


class Journal:
    def must_be_writable(self) -> None:
        """Raise if changes cannot be taken at all."""

    def begins(self, store: Store, ids: Ids | None) -> None:
        """A change of these subscriptions, if any, is about to be made."""

    def put(
        self,
        seq: int,
        subscription: Subscription,
        notes: Sequence[Notification],
        publisher: Publisher,
        *,
        same_window: bool = False,
    ) -> None:
        """A subscription was set, of which these notifications are due; `same_window` if it goes on with the window it had."""

    def loaded(
        self,
        seq: int,
        table: pa.Table,
        replaced: Sequence[str],
        since: int,
        notes: Sequence[Notification],
        publisher: Publisher,
    ) -> None:
        """A table of subscriptions was set, and these notifications are due."""

    def removed(self, seq: int, ids: Sequence[str]) -> None:
        """Subscriptions were removed."""

    def published(self, events: Publications | None, notes: Sequence[Notification], publisher: Publisher) -> None:
        """Events were taken in, or time has passed, and these notifications are due."""

    def done(self, acts: list[Act], seconds: float, publisher: Publisher) -> None:
        """These acts, which took so long, are committed and applied."""

    def restored(self, fresh: Callable[[], Publisher], store: Store) -> Publisher:
        """The publisher as it was at the last commit."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is held."""
