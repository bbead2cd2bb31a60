"""Similarity subscriptions: near enough in place and words, with the similarity as the score.

They stand in *parts*, each an immutable `SimilarityIndex` (R^t++) with the change at which each of its entries went. What is new
becomes a part of its own at the next match, together with every part that is not more than twice as large, so there are few parts
and a subscription is indexed again O(log n) times. A reader holds the parts and a change number, as it does with segments.

The weight of a word (idf) is counted over all similarity clauses when a *generation* begins and stays the same until the next,
for everyone in it; a word that came since counts as if one clause had it. A generation ends when more than RENEW changes, and more
than half as many as there are subscriptions, have come: then all is indexed anew. `stats` reports it, `weight` gives a word's.

Predicates other than the box and the words must hold as in any filter, and are checked last. The owner (`Store`) guards it with
its lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.index.rttree.similarity import SimilarityIndex
from tidings.match.store.hits import NEVER, Found, Terms, ValuesOf, by_of, terms_of
from tidings.match.store.memtable_reader import expiry_of
from tidings.model.columns.arrays import EventColumns, Vocabularies, encode_clauses
from tidings.model.door.subscription import Subscription
from tidings.model.values.schema import Schema
from tidings.rank.similarity import idf

RENEW = 16


class Part:
    def __init__(
        self, schema: Schema, vocabularies: Vocabularies, weight: NDArray[np.float64], members: list[Subscription]
    ) -> None:
        self.schema = schema
        pairs = [(s, clause) for s in members for clause in s.clauses]
        self.owner = [s for s, _ in pairs]
        self.rest = [clause.others() for _, clause in pairs]
        self.died = np.full(len(pairs), NEVER)
        columns = encode_clauses(schema, vocabularies, [clause for _, clause in pairs], range(len(pairs)))
        alpha, theta = np.array([s.similarity for s in self.owner], np.float64).reshape(-1, 2).T.copy()
        self.index = SimilarityIndex.build(columns.box, columns.word_start, columns.word, alpha, theta, weight)

    def __len__(self) -> int:
        return len(self.owner)

    def match(self, events: EventColumns, values: ValuesOf, seq: int) -> Found:
        """The matches at change `seq`, each subscription once an event, its best clause counting."""
        best: dict[tuple[int, str], tuple[float, int]] = {}
        for row, number, score in zip(*(part.tolist() for part in self.index.match_batch(events)), strict=True):
            if self.died[number] > seq and self.rest[number].holds(self.schema, values(row)):
                key = (row, self.owner[number].id)
                best[key] = max(best.get(key, (score, number)), (score, number), key=lambda pair: pair[0])
        found = [(row, number, score) for (row, _), (score, number) in sorted(best.items())]
        event, ordinal, scores = zip(*found, strict=True) if found else ((), (), ())
        return Found(self, np.array(event, np.int32), np.array(ordinal, np.int32), np.array(scores, np.float64))

    given = True

    def ids(self, ordinal: NDArray[np.integer]) -> pa.StringArray:
        return pa.array(self.names(ordinal), pa.string())

    def names(self, ordinal: NDArray[np.integer]) -> list[str]:
        return [self.owner[number].id for number in ordinal.tolist()]

    def scores(self, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: ValuesOf) -> NDArray[np.float64]:
        raise AssertionError("the similarity is the score, and comes with the match")

    def expiry(self, ordinal: NDArray[np.int32]) -> NDArray[np.int64] | None:
        return expiry_of([self.owner[number] for number in ordinal.tolist()])

    def ranked(self, ordinal: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        return np.array([self.owner[number].is_ranked for number in ordinal.tolist()], np.bool_)

    def terms(self, ordinal: NDArray[np.integer]) -> list[Terms]:
        return terms_of(self.owner[number] for number in ordinal.tolist())

    def by(self, ordinal: NDArray[np.integer]) -> tuple[NDArray[np.integer], Callable[[int], str]] | None:
        return by_of(self.owner[number] for number in ordinal.tolist())

    def subscription(self, ordinal: int) -> Subscription:
        return self.owner[ordinal]


class Similar:
    def __init__(self, schema: Schema, vocabularies: Vocabularies) -> None:
        self._schema = schema
        self._vocabularies = vocabularies
        self.generation = 0
        self._frequency = np.zeros(0, np.int64)
        self._clauses = 0
        self._changes = 0
        self._live: dict[str, Subscription] = {}
        self._fresh: dict[str, Subscription] = {}
        self._parts: tuple[Part, ...] = ()
        self._place: dict[str, tuple[Part, range]] = {}

    def __len__(self) -> int:
        return len(self._live)

    def put(self, seq: int, subscription: Subscription) -> None:
        """A subscription was set by change `seq`, whether it goes by similarity or, from now on, not."""
        self.remove(seq, subscription.id)
        if subscription.similarity is not None:
            self._live[subscription.id] = self._fresh[subscription.id] = subscription
            self._changes += 1

    def remove(self, seq: int, id: str) -> None:
        if self._live.pop(id, None) is None:
            return
        self._changes += 1
        self._fresh.pop(id, None)
        if id in self._place:
            part, entries = self._place.pop(id)
            part.died[entries.start : entries.stop] = seq

    def parts(self) -> tuple[Part, ...]:
        """Everything in parts, what is new too."""
        if self._fresh:
            # One that counted nothing, because no clause could ever match, weighs nothing.
            if not self._clauses or self._changes > max(RENEW, len(self._live) // 2):
                self._begin_generation()
            else:
                self._index_fresh()
        return self._parts

    def _begin_generation(self) -> None:
        clauses = [clause for s in self._live.values() for clause in s.clauses]
        codes = [code for clause in clauses for code in self._vocabularies.words.codes(clause.words)]
        self._frequency = np.bincount(np.array(codes, np.int64), minlength=1)
        self._clauses, self._changes = len(clauses), 0
        self.generation += 1
        self._parts, self._place = (), {}
        self._fresh = dict(self._live)
        self._index_fresh()

    def _index_fresh(self) -> None:
        members, kept = dict(self._fresh), [*self._parts]
        while kept and len(kept[-1]) <= 2 * len(members):
            members |= {s.id: s for s in kept.pop().owner if self._live.get(s.id) is s}
        part = Part(self._schema, self._vocabularies, self._weights(), [*members.values()])
        first = 0
        for s in members.values():
            self._place[s.id] = (part, range(first, first + len(s.clauses)))
            first += len(s.clauses)
        self._parts, self._fresh = (*kept, part), {}

    def _weights(self) -> NDArray[np.float64]:
        """By word, for all words known by now."""
        frequency = np.zeros(max(len(self._frequency), len(self._vocabularies.words)), np.int64)
        frequency[: len(self._frequency)] = self._frequency
        return idf(frequency, self._clauses)

    def weight(self, word: str) -> float:
        """What a word weighs in this generation."""
        code = self._vocabularies.words.code(word)
        seen = self._frequency[code] if 0 <= code < len(self._frequency) else 0
        return float(idf(np.array([seen]), self._clauses)[0])

    def use(self, vocabularies: Vocabularies, used: NDArray[np.bool_]) -> None:
        """Go on in these codes, of the words that were `used`: they weigh what they weighed, and everybody is indexed anew."""
        if self.generation and vocabularies.words is not self._vocabularies.words:
            frequency = np.zeros(len(used), np.int64)
            frequency[: len(self._frequency)] = self._frequency[: len(used)]
            self._frequency = frequency[used]
            self._parts, self._place, self._fresh = (), {}, dict(self._live)
        self._vocabularies = vocabularies

    def stats(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "subscriptions": len(self._live),
            "parts": [len(part) for part in self._parts],
            "idf of clauses": self._clauses,
            "changes since": self._changes,
        }
