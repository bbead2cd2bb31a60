"""A few clauses, asked one by one as they are defined: how a tiny segment or memtable answers a single event.

Up to TINY clauses that is quicker than the first operations on arrays, and nothing is encoded or compiled. Clauses of a box, which
most have, are asked in one loop over the boxes; what a box lets pass, and what has none, is asked for its ranges by a short loop
over what was taken out of the clause beforehand; what a clause asks beyond these, it is asked itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tidings.match.store.hits import Failures
from tidings.model.filter.clause import Box, Clause, Unanswered, Values
from tidings.model.values.schema import Schema

TINY = 64


class Names(Protocol):
    """The id that stands at an ordinal."""

    def __getitem__(self, ordinal: int, /) -> str: ...


class Few(NamedTuple):
    """A clause, by its place among all: its subscription's ordinal, whether that is nothing but an ideal point, and what is asked
    beside a box."""

    at: int
    ordinal: int
    near: bool
    ranges: list[tuple[str, float, float]]
    more: Clause | None


class Definition:
    def __init__(self, schema: Schema, clauses: Iterable[tuple[int, bool, Clause]]) -> None:
        """(ordinal, whether it is nothing but an ideal point, clause), those of a subscription together."""
        self._schema, self._place = schema, schema.place
        numbered = enumerate(clauses)
        asked = [(clause.box, Few(at, ordinal, near, _spans(clause), _more(clause))) for at, (ordinal, near, clause) in numbered]
        self.size = len(asked)
        self._placed: list[tuple[float, float, float, float, Few]] = [(*box, few) for box, few in asked if box is not None]
        self._anywhere = [few for box, few in asked if box is None]

    def match(self, values: Values, near: bool, failures: Failures | None, names: Names) -> list[int]:
        """The ordinals that match, each once, in the order given; `failures` counts, by name, filters without an answer."""
        left = self._anywhere
        place: Box | None = values.get(self._place) if self._place is not None else None
        if place is not None:
            west, south, east, north = place
            here = [few for x0, y0, x1, y1, few in self._placed if x0 <= east and x1 >= west and y0 <= north and y1 >= south]
            if here:
                left = sorted([*left, *here]) if left else here
        found: list[int] = []
        for _, ordinal, ideal, ranges, more in left:
            if ideal and not near:
                continue
            for attribute, low, high in ranges:
                if attribute not in values or not low <= values[attribute] <= high:
                    break
            else:
                if (more is None or self._holds(more, values, ordinal, failures, names)) and (not found or found[-1] != ordinal):
                    found.append(ordinal)
        return found

    def _holds(self, clause: Clause, values: Values, ordinal: int, failures: Failures | None, names: Names) -> bool:
        failed = clause.first_failure(self._schema, values)
        if failures is not None and type(failed) is Unanswered:
            failures[names[ordinal]] += 1
        return failed is None


def _spans(clause: Clause) -> list[tuple[str, float, float]]:
    return [(name, low, high) for name, (low, high) in clause.ranges.items()]


def _more(clause: Clause) -> Clause | None:
    """The clause itself if there is more to ask than ranges and a box."""
    others = clause.within or clause.without or clause.nulls or clause.present or clause.words or clause.residue
    return clause if others else None
