"""Subscriptions as the registry keeps them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from tidings.errors import DroppedWarning, NeverMatchesWarning
from tidings.model.door.subscription import Subscription, read_filter, read_ranking
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_residue
from tidings.model.values.limits import recovering
from tidings.model.values.pace import PACES
from tidings.model.values.schema import Schema


def to_record(subscription: Subscription) -> dict[str, Any]:
    """The subscription as JSON can carry it. Clauses are compiled again from the filter; where it does not say all they are
    written out."""
    record: dict[str, Any] = {"id": subscription.id}
    if subscription.filter is not None:
        record["filter"] = subscription.filter
    if not subscription.says_all:
        record["clauses"] = [clause_to_record(clause) for clause in subscription.clauses]
    record["score"] = subscription.score if subscription.score_source is None else subscription.score_source
    plain = {name: getattr(subscription, name) for name in ("k", "by", "expires", "owner", "error", "since", "per", "tz", *PACES)}
    plain["tags"] = list(subscription.tags) or None
    plain["within"] = None if subscription.within is None else [list(subscription.within[0]), subscription.within[1]]
    plain["centre"] = None if subscription.centre is None else list(subscription.centre)
    plain["weights"] = dict(subscription.weights) or None
    plain["similarity"] = None if subscription.similarity is None else list(subscription.similarity)
    plain["window"] = None if subscription.window is None else str(subscription.window)
    return record | {name: value for name, value in plain.items() if value is not None}


def from_record(schema: Schema, record: Mapping[str, Any]) -> Subscription:
    """The inverse of `to_record`. No limit is asked again: what was accepted once is accepted for ever."""
    with recovering():
        return _from_record(schema, record)


def _from_record(schema: Schema, record: Mapping[str, Any]) -> Subscription:
    fields = dict(record)
    name, expires, clauses = fields.pop("id"), fields.pop("expires", None), fields.pop("clauses", None)
    since, within, centre = (fields.pop(field, None) for field in ("since", "within", "centre"))
    source = fields.pop("filter", None)
    if clauses is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeverMatchesWarning)
            warnings.simplefilter("ignore", DroppedWarning)
            source, compiled = read_filter(schema, source)
    else:
        compiled = tuple(clause_from_record(schema, clause) for clause in clauses)
    return Subscription(
        id=name,
        clauses=compiled,
        filter=source,
        expires=expires,
        since=since,
        within=None if within is None else (tuple(within[0]), within[1]),
        centre=None if centre is None else tuple(centre),
        **read_ranking(schema, fields),
    )


def clause_to_record(clause: Clause) -> dict[str, Any]:
    """A clause, its empty parts left out; null is an open end of a range, a residue is its source."""
    ranges = {name: [_bounded(lo), _bounded(hi)] for name, (lo, hi) in clause.ranges.items()}
    record = {
        "ranges": ranges,
        "within": {name: sorted(strings) for name, strings in clause.within.items()},
        "without": {name: sorted(strings) for name, strings in clause.without.items()},
        "nulls": sorted(clause.nulls),
        "present": sorted(clause.present),
        "box": None if clause.box is None else [_bounded(end) for end in clause.box],
        "words": sorted(clause.words),
        "residue": [residue.source for residue in clause.residue],
    }
    return {name: part for name, part in record.items() if part}


def clause_from_record(schema: Schema, record: Mapping[str, Any]) -> Clause:
    ranges = {name: (_open(lo, -math.inf), _open(hi, math.inf)) for name, (lo, hi) in record.get("ranges", {}).items()}
    box = record.get("box")
    return Clause(
        ranges=ranges,
        within={name: frozenset(strings) for name, strings in record.get("within", {}).items()},
        without={name: frozenset(strings) for name, strings in record.get("without", {}).items()},
        nulls=frozenset(record.get("nulls", ())),
        present=frozenset(record.get("present", ())),
        box=None
        if box is None
        else (_open(box[0], -math.inf), _open(box[1], -math.inf), _open(box[2], math.inf), _open(box[3], math.inf)),
        words=frozenset(record.get("words", ())),
        residue=tuple(compile_residue(schema, source) for source in record.get("residue", ())),
    )


def _bounded(end: float) -> float | None:
    return None if math.isinf(end) else end


def _open(end: float | None, otherwise: float) -> float:
    return otherwise if end is None else end
