"""Similarity subscriptions: near enough in place and words, with the similarity as the score.

All of a topic's similarity subscriptions stand in one `SimilarityIndex`, made anew at the first match after any of them
changed: that is a *generation*. The weight of a word (idf) is counted over the clauses of the generation, so within one it is
the same for everyone, and `stats` reports it. Predicates other than the box and the words must hold as in any filter, and are
checked last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tidings.engine.matching import is_live
from tidings.engine.store import Store
from tidings.index.rt_similarity import SimilarityIndex
from tidings.model.arrays import EventColumns, encode_clauses
from tidings.model.clause import Clause, Values
from tidings.model.subscription import Subscription
from tidings.rank.similarity import idf


class Similar:
    def __init__(self) -> None:
        self.generation = 0
        self._change = -1
        self._index: SimilarityIndex | None = None
        self._owner: list[Subscription] = []
        self._rest: list[Clause] = []

    def match(
        self, store: Store, events: EventColumns, values: Callable[[int], Values], time: int
    ) -> list[tuple[int, Subscription, float]]:
        """(event row, subscription, similarity) of every match, each once, its best clause counting."""
        self._refresh(store)
        if self._index is None:
            return []
        found: dict[tuple[int, str], tuple[int, Subscription, float]] = {}
        for row, number, score in zip(*(part.tolist() for part in self._index.match_batch(events)), strict=True):
            s = self._owner[number]
            if is_live(s, time) and self._rest[number].holds(store.schema, values(row)):
                key = (row, s.id)
                if key not in found or found[key][2] < score:
                    found[key] = (row, s, score)
        return list(found.values())

    def _refresh(self, store: Store) -> None:
        with store.lock:
            if self._change == store.similar_change:
                return
            self._change = store.similar_change
            subscriptions = store.similar_subscriptions()
        self.generation += 1
        pairs = [(s, clause) for s in subscriptions for clause in s.clauses]
        self._owner = [s for s, _ in pairs]
        self._rest = [replace(clause, box=None, words=frozenset()) for _, clause in pairs]
        self._index = self._built(store, pairs) if pairs else None

    @staticmethod
    def _built(store: Store, pairs: Sequence[tuple[Subscription, Clause]]) -> SimilarityIndex:
        columns = encode_clauses(store.schema, store.vocabularies, [clause for _, clause in pairs], range(len(pairs)))
        frequency = np.bincount(columns.word, minlength=max(1, len(store.vocabularies.words)))
        alpha, theta = np.array([s.similarity for s, _ in pairs], np.float64).T.copy()
        return SimilarityIndex.build(columns.box, columns.word_start, columns.word, alpha, theta, idf(frequency, len(pairs)))

    def stats(self) -> dict[str, Any]:
        return {"generation": self.generation, "clauses": len(self._owner)}
