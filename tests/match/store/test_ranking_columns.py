"""What makes the lists of a segment's subscriptions is the same from arrays as from the subscriptions themselves."""

from __future__ import annotations

import numpy as np
import pytest

import tidings as td
from tidings.match.store.hits import terms_of

RANKINGS = {
    "plain": [{}, {}],
    "lists": [{}, {"k": 3, "window": "1 day"}, {"k": 3}, {"window": 5}, {"k": 10, "window": "1 day", "error": 0.1}],
    "groups": [{"k": 2, "window": "day", "tz": "Europe/Berlin"}, {"k": 1, "per": "brand"}, {}],
    "digests": [{"k": 2, "digest": "day"}, {"k": 2, "window": "1 hour"}, {"digest": "day"}],
}


@pytest.mark.parametrize("name", RANKINGS)
def test_terms_are_those_of_the_subscriptions(name):
    topic = td.Topic("t", {"price": td.Number(), "brand": td.Category()})
    for number, ranking in enumerate(RANKINGS[name]):
        topic.subscribe(f"s{number}", "price < 5", time=number, **ranking)
    topic.flush()
    (live,) = topic.store.snapshot.segments
    ordinals = np.arange(len(live))[::-1]
    assert live.terms(ordinals) == terms_of(live.subscription(ordinal) for ordinal in ordinals.tolist())
    assert live.terms(ordinals[:0]) == []
