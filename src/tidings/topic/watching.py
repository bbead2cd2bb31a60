"""What of a keyed topic's objects a subscription counts, beside its filter: by its window, its `per` and what it recalls. How its
board begins, and when an update of it goes on with what it counted."""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter

from tidings.boards.boards import Boards
from tidings.boards.changes import Changes
from tidings.boards.plain import Counts
from tidings.model.door.by import read_by
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import PREVIOUS, Values
from tidings.model.values.calendar import window_end
from tidings.model.values.groups import group_of
from tidings.model.values.schema import Schema
from tidings.rank.nearness import ideal_point
from tidings.rank.relevance import relevance_of
from tidings.topic.live.live_events import LiveEvents

_WINDOW = attrgetter("k", "window", "by", "error", "since", "per", "tz")


def begin_board(
    schema: Schema, boards: Boards, objects: LiveEvents, subscription: Subscription, past: dict[str, Values] | None, now: int
) -> Changes:
    """Its current list is what changed; `past` is what it recalled before, if its board is made anew."""
    s, by, counts = subscription, subscription.by, counts_of(schema, objects, subscription)
    watch = partial(boards.watch, s.id, s.clauses, s.k, expires=s.expires, counts=counts, past=past, time=now)
    if by is None:
        # A score without a finite value is no match, and matching counts it.
        return watch(None, s.score_of, counted=False)
    if not by.lstrip().startswith("{") and not s.terms:
        return watch(by)
    relevance = relevance_of(schema, by)

    def known(values: Values) -> float:
        """Of a match: what has no finite score is none, whatever it is ranked by."""
        value = relevance(values, 0) if not s.terms or math.isfinite(s.score_of(values)) else None
        return math.nan if value is None else value

    return watch(None, known)


def counts_of(schema: Schema, objects: LiveEvents, subscription: Subscription) -> Counts:
    window, per, tz = subscription.window, subscription.per, subscription.tz

    def ends(key: str) -> int:
        assert window is not None
        end = window_end(window, tz, objects.published(key)[0])
        assert end is not None
        return end

    def group(key: str, values: Values) -> int:
        return group_of(key if per == "id" else values.get(per or ""))

    timed = window is not None and window.count is None
    return Counts(ends if timed else None, None if per is None else group, recalls_of(schema, subscription))


def recalls_of(schema: Schema, subscription: Subscription) -> frozenset[str]:
    """The names, as `PREV(price)`, under which a subscription asks for values before the last update."""
    names = {name for clause in subscription.clauses for residue in clause.residue for name in residue.attributes}
    by = None if subscription.by is None or PREVIOUS not in subscription.by.upper() else read_by(schema, subscription.by)
    if by is not None and by.expression is not None:
        names |= by.expression.attributes
    return frozenset(name for name in names if name.startswith(PREVIOUS))


def same_window(before: Subscription, after: Subscription) -> bool:
    """Whether an update leaves the window, and what it has delivered, as it was.

    What is nothing but an ideal point keeps no list of its matches, so a filter given to it, or taken away, makes another window.
    """
    a, b = before, after
    if a.by is not None and (ideal_point(a) is None) != (ideal_point(b) is None):
        return False
    return bool(_WINDOW(a) == _WINDOW(b))
