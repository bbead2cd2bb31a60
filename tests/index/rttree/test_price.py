"""The price of a home in R^t++ against what the tree counts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.index.rttree.test_tree import clause_columns, event_columns
from tidings.index.rttree.body import level_sizes
from tidings.index.rttree.price import POSTING, price, touched_share
from tidings.index.rttree.tree import RtTree


@pytest.mark.deep
def test_the_price_is_about_the_postings_that_are_read():
    rng = np.random.default_rng(4)
    count, side, vocabulary, has = 20_000, 0.05, 400, 12
    corner = rng.random((count, 2)) * (1 - side)
    words = [set(rng.choice(vocabulary, 2, replace=False).tolist()) for _ in range(count)]
    tree = RtTree("R^t++")
    tree.insert(
        np.arange(count, dtype=np.int32), clause_columns([((*c, *(c + side)), w) for c, w in zip(corner, words, strict=True)])
    )
    where = rng.random((400, 2))
    tree.match_batch(event_columns([((*at, *at), set(rng.choice(vocabulary, has, replace=False).tolist())) for at in where]))
    box_share, first_word_share = np.full(count, side * side), np.full(count, has / vocabulary)
    expected = (first_word_share * touched_share(level_sizes(count)[-2], box_share)).sum()
    assert 0.5 < expected / (tree.stats["postings"] / 400) < 2.0
    assert price(count, has, box_share, first_word_share).sum() > POSTING * expected


def test_rarer_words_and_smaller_boxes_are_cheaper():
    share = np.array([0.001, 0.1])
    common = np.full(2, 0.01)
    for prices in (price(100_000, 13, common, share), price(100_000, 13, share, common)):
        assert prices[0] < prices[1]
    assert price(0, 13, np.zeros(0), np.zeros(0)).tolist() == []
