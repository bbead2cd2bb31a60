"""What a subscription costs, asked at the door: how many, clauses, corners of polygons, how large a k, and the price of all."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidings.errors import NeverMatchesWarning
from tidings.model.filter.compile import compile_filter
from tidings.serve.access.callers import Caller
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.refusals import TooLarge, TooMany

PAIR = re.compile(r"-?\d[\d.eE+-]*\s+-?\d[\d.eE+-]*\s*[,)]")
"""A corner of a geometry in WKT."""


OWNERS = 10_000
"""What a filter of an owner's key may cost if its quotas do not say: a thousand plain ranges, a polygon of thousands of corners."""


def most_of(caller: Caller) -> int | None:
    """The highest price of a filter; None is the engine's own limit."""
    if caller.quotas.price is not None:
        return caller.quotas.price
    return None if caller.changes() is None else OWNERS


class Door:
    """Refuses what a caller's quotas do not allow, with the price."""

    def price(self, hosted: HostedTopic, caller: Caller, fields: Mapping[str, Any], *, new: bool) -> None:
        quotas, filter = caller.quotas, fields.get("filter")
        if new:
            self._room(hosted, caller, 1)
        k = fields.get("k")
        if quotas.k is not None and isinstance(k, int) and k > quotas.k:
            raise TooLarge(f"k is {k}: this key may ask for {quotas.k} at most", limit=quotas.k)
        if quotas.vertices is not None and filter is not None:
            price = vertices_of(filter)
            if price > quotas.vertices:
                raise TooLarge(f"the filter's shapes have {price} corners: this key may use {quotas.vertices}", price=price)
        most = most_of(caller)
        if filter is not None and (quotas.clauses is not None or most is not None):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NeverMatchesWarning)
                clauses = compile_filter(hosted.topic.schema, filter)
            if quotas.clauses is not None and len(clauses) > quotas.clauses:
                raise TooLarge(f"the filter has {len(clauses)} clauses: this key may use {quotas.clauses}", price=len(clauses))
            price = sum(clause.price for clause in clauses)
            if most is not None and price > most:
                raise TooLarge(f"the filter has a price of {price}: this key may use {most}", price=price, limit=most)

    def price_many(self, hosted: HostedTopic, caller: Caller, table: pa.Table) -> None:
        self._room(hosted, caller, len(table))
        if any(q is not None for q in (caller.quotas.k, caller.quotas.clauses, caller.quotas.vertices, most_of(caller))):
            for row in table.select([name for name in ("filter", "k") if name in table.column_names]).to_pylist():
                self.price(hosted, caller, row, new=False)

    def _room(self, hosted: HostedTopic, caller: Caller, more: int) -> None:
        most = caller.quotas.subscriptions
        if most is None:
            return
        has = len(hosted.topic) if caller.owner is None else hosted.owners.count(caller.owner)
        if has + more > most:
            raise TooMany(f"there are {has} subscriptions and {more} more are asked: this key may have {most}", 60, limit=most)


def vertices_of(filter: Any) -> int:
    """Corners of the geometries in a filter, text or JSON; at most a few too many are counted."""
    if isinstance(filter, str) and not filter.lstrip().startswith("{"):
        return len(PAIR.findall(filter))
    said = json.loads(filter) if isinstance(filter, str) else filter
    return _pairs(said)


def _pairs(said: Any) -> int:
    todo, found = [said], 0
    while todo:
        part = todo.pop()
        if isinstance(part, Mapping):
            todo += part.values()
        elif isinstance(part, list):
            if len(part) == 2 and all(isinstance(x, int | float) for x in part):
                found += 1
            else:
                todo += part
    return found
