"""The experiments' comparators answer as the oracles do, so that a race between them is fair."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.baselines.inverted_rtree import InvertedRtree
from experiments.baselines.keyword_first import KeywordFirst
from experiments.baselines.spatial_first import SpatialFirst
from tests.index.rttree.test_similarity import WEIGHTS
from tests.index.rttree.test_tree import clause_columns, event_columns, many, pairs
from tests.oracle.place_words import PlaceWordsOracle
from tests.oracle.similarity import similar

ROWS = [(box, frozenset(words or {1})) for box, words in many(5, 400)]
MESSAGES = [(box, frozenset(words) | {2, 3}) for box, words in many(6, 30)] + [((1.0, 1.0, 1.0, 1.0), frozenset(range(12)))]


@pytest.mark.parametrize("method", [KeywordFirst, SpatialFirst, InvertedRtree])
def test_matches_and_similarities(method):
    rival, events = method(clause_columns(ROWS)), event_columns(MESSAGES)
    oracle = PlaceWordsOracle()
    oracle.insert(np.arange(len(ROWS), dtype=np.int32), clause_columns(ROWS))
    assert pairs(rival.match_batch(events)) == pairs(oracle.match_batch(events))
    for alpha, theta in ((0.5, 0.5), (0.25, 0.75), (0.75, 0.5), (0.5, 0.875)):
        expected = similar([(*row, alpha, theta) for row in ROWS], MESSAGES, WEIGHTS.tolist())
        assert rival.similar_batch(events, alpha, theta, WEIGHTS) == len(expected)
