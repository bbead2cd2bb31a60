"""Offers still come to what the pipeline left: the topic's own subscriptions hear of them."""

from __future__ import annotations

from itertools import islice

import numpy as np

import tidings as td
from demo import offers
from demo.live import FEW, batches
from tests.serve.conftest import serving
from tidings.client.connecting import connect
from tidings.serve.settings import Settings

SCHEMA = {"price": td.Number(), "brand": td.Category(), "place": td.Place(), "about": td.Words(tokenizer="as-is")}


def test_offers_find_those_who_wait_in_the_folder_that_is_served(tmp_path, monkeypatch):
    monkeypatch.setattr(offers, "EVENTS", 120)
    place, weight = offers.places()
    with td.open(tmp_path / "served" / "offers", "offers", SCHEMA) as topic:
        topic.subscribe_many(offers.subscriptions(np.random.default_rng(1), place, weight, 500, "s"))
        topic.subscribe("all", None)
    with serving(Settings(tmp_path / "served", open=True)) as client, connect(str(client.base_url)) as service:
        posted = [service["offers"].post(some) for some in islice(batches(), 12)]
    assert sum(one.events for one in posted) == 12 * FEW, "every id is new"
    assert sum(one.told for one in posted) >= 12 * FEW
