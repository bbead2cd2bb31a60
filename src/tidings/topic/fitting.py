"""Which subscriptions a kind of topic has a meaning for, one by one and in tables, and which begin with their first match."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from tidings.errors import RankingWarning, SubscriptionError
from tidings.match.store.segment import near_rows
from tidings.match.store.subscription_rows import Rows
from tidings.model.columns.subscription_tables import SubscriptionBatch, subscription_at
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import PREVIOUS
from tidings.model.values.pace import PACES
from tidings.model.values.schema import Schema
from tidings.topic.watching import recalls_of


def must_fit(schema: Schema, subscription: Subscription, key: str | None) -> None:
    """Refuse what this kind of topic has no meaning for, and warn of what has no effect: a window without a k lets every match
    through, `by` and `per` without it rank nothing."""
    s, told = subscription, None
    if key is None and (names := recalls_of(schema, s)):
        raise SubscriptionError(f"subscription {s.id!r} asks for {min(names)}: only objects of a keyed topic have a value before")
    if key is None and s.dwell is not None:
        raise SubscriptionError(f"dwell is {s.dwell!r}: only objects of a keyed topic stay; give the topic a key")
    if key is not None:
        told = "a window of so many events, which a keyed topic does not ask" if s.window is not None and s.window.count else None
    elif s.k is None and s.window is not None:
        told = "a window and no k: every match is told, as without a window"
    elif s.k is None and s.by is not None and s.digest is None:
        told = "a by and no k: every match is told, and none is ranked"
    elif s.k is None and s.per is not None and s.digest is None and s.cooldown is None:
        told = "a per and no k: every match is told, also the others of one value"
    if told is not None:
        warnings.warn(f"subscription {s.id!r} has {told}", RankingWarning, stacklevel=4)


def all_must_fit(schema: Schema, batch: SubscriptionBatch, key: str | None) -> None:
    """The same refusal for the rows of a table."""
    texts = [] if batch.filters is None else batch.filters.distinct
    texts = [*texts, *(batch.ranking.columns["by"].unique().to_pylist() if "by" in batch.ranking.columns else ())]
    if key is None and any(text is not None and PREVIOUS in text.upper() for text in texts):
        for row in range(len(batch)):
            must_fit(schema, subscription_at(batch, row), key)


def begins_at_once(rows: Rows) -> NDArray[np.bool_]:
    """Which rows are nothing but an ideal point, or have a pace; others begin with their first match."""
    begins = near_rows(rows.table, rows.clauses)
    for name in PACES:
        if name in rows.table.column_names:
            begins |= rows.table[name].is_valid().to_numpy()
    return begins


def warn_of_first(schema: Schema, batch: SubscriptionBatch, key: str | None) -> None:
    """The same warning for a table: of the first row that deserves it."""
    given = batch.ranking.columns
    idle = np.zeros(len(batch), np.bool_)
    for name in ("window", "by", "per") if key is None else ():
        idle |= given[name].is_valid().to_numpy(zero_copy_only=False) if name in given else False
    for name in ("k", "digest", "cooldown") if key is None else ():
        idle &= given[name].is_null().to_numpy(zero_copy_only=False) if name in given else True
    if key is not None and "window" in given:
        idle = np.array(["event" in (window or "") for window in given["window"].to_pylist()], np.bool_)
    if idle.any():
        must_fit(schema, subscription_at(batch, int(np.argmax(idle))), key)
