"""The demo's topics and batches, through a real service."""

from __future__ import annotations

import random
from itertools import islice

from tests.serve.conftest import serving
from tidings.client.connecting import connect
from tidings.console import demo
from tidings.serve.settings import Settings


def test_people_wait_and_some_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "PEOPLE", 60)
    with serving(Settings(tmp_path / "data", open=True)) as client, connect(str(client.base_url)) as service:
        offers, stock = demo.prepared(service)
        assert (len(offers), len(stock)) == (60, 40)
        some = islice(demo.batches(random.Random(1)), 12)
        told = [offers.post(events).told + stock.post(objects).told for events, objects in some]
        assert sum(told) > 0
        again, _ = demo.prepared(service)
        assert len(again) == 60, "made once"
