"""A few clauses, asked one by one as they are defined: how a tiny segment or memtable answers a single event.

Up to TINY clauses that is quicker than the first operations on arrays, and nothing is encoded or compiled. A clause of ranges and a
box, which most are, is asked by a short loop over what was taken out of it beforehand; any other is asked itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.match.store.hits import Failures
from tidings.model.filter.clause import Clause, Unanswered, Values
from tidings.model.values.schema import Schema

TINY = 64


class Definition:
    def __init__(self, schema: Schema, clauses: Iterable[tuple[int, bool, Clause]]) -> None:
        """(ordinal, whether it is nothing but an ideal point, clause), those of a subscription together."""
        self._schema = schema
        self._clauses = [(ordinal, near, clause.box, _spans(clause), _more(clause)) for ordinal, near, clause in clauses]

    def __len__(self) -> int:
        return len(self._clauses)

    def match(self, values: Values, near: bool, failures: Failures | None, name: Callable[[int], str]) -> list[int]:
        """The ordinals that match, each once, in the order given; `failures` counts, by name, filters without an answer."""
        found: list[int] = []
        place = None if self._schema.place is None else values.get(self._schema.place)
        xmin, ymin, xmax, ymax = (0.0, 0.0, 0.0, 0.0) if place is None else place
        for ordinal, ideal, box, ranges, more in self._clauses:
            if box is not None and (place is None or box[0] > xmax or box[1] > ymax or box[2] < xmin or box[3] < ymin):
                continue
            if ideal and not near:
                continue
            for attribute, low, high in ranges:
                if attribute not in values or not low <= values[attribute] <= high:
                    break
            else:
                if (more is None or self._holds(more, values, ordinal, failures, name)) and (not found or found[-1] != ordinal):
                    found.append(ordinal)
        return found

    def _holds(self, clause: Clause, values: Values, ordinal: int, failures: Failures | None, name: Callable[[int], str]) -> bool:
        failed = clause.first_failure(self._schema, values)
        if failures is not None and type(failed) is Unanswered:
            failures[name(ordinal)] += 1
        return failed is None


def _spans(clause: Clause) -> list[tuple[str, float, float]]:
    return [(name, low, high) for name, (low, high) in clause.ranges.items()]


def _more(clause: Clause) -> Clause | None:
    """The clause itself if there is more to ask than ranges and a box."""
    others = clause.within or clause.without or clause.nulls or clause.present or clause.words or clause.residue
    return clause if others else None
