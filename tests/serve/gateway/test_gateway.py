"""Gateways on a real broker: lists and streams are the oracle's, whoever joins, leaves or is killed."""

from __future__ import annotations

import signal

import pytest

from tests.serve.gateway.faults import faults
from tests.serve.gateway.world import world
from tests.spark.connectors.jars import NoMaven, fetch

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", autouse=True)
def jars():
    try:
        fetch("broker")
    except NoMaven as error:
        pytest.skip(str(error))


def test_lists_and_streams_are_the_oracles_through_joins_leaves_and_kills(tmp_path):
    with world(tmp_path, 1) as flats:
        flats.update(10)
        flats.join()
        flats.join()
        for i in range(24):
            l = flats.draw.randrange(80) / 8
            flats.watch(f"w{i}", l, l + flats.draw.randrange(40) / 8, hears=i % 4 == 0)
        for _ in range(20):
            flats.update(flats.draw.choice([1, 1, 5]))
        flats.agree()
        flats.leave()  # killed
        flats.update(3)
        flats.join()
        for _ in range(10):
            flats.update()
        flats.agree()
        flats.leave(signal.SIGTERM)
        flats.update(3)
        flats.agree()
        assert sum(len(ear.heard) for ear in flats.ears.values()) > 20


def test_a_zone_is_split_while_updates_flow_and_its_watchers_are_handed_on(tmp_path):
    with world(tmp_path, 3, zones=2) as flats:
        flats.update(20)
        flats.join()
        flats.crowd(8, hears=2)
        flats.update(3)
        flats.painter.split(0)
        for _ in range(6):
            flats.update(2)
        flats.agree()
        assert flats.painter.plan.partitions == 3


def test_who_is_away_while_its_zone_is_split_misses_nothing(tmp_path):
    with world(tmp_path, 5, zones=2) as flats:
        flats.update(20)
        flats.join()
        flats.crowd(16, hears=1)
        flats.agree()
        for ear in flats.ears.values():
            ear.stop()
        flats.update(5)
        flats.painter.split(0)
        flats.update(5)
        flats.painter.split(2)  # what was just cut off
        flats.update(5)
        flats.caught_up()
        flats.join()
        flats.gateways.pop(0).end()
        flats.caught_up()
        for ear in flats.ears.values():
            ear.start()
        flats.agree()
        assert sum(len(ear.heard) for ear in flats.ears.values()) > 20


def test_faults_leave_every_list_and_stream_as_it_should_be(tmp_path):
    """A short run of what the soak does."""
    done = faults(4, 5, tmp_path)
    assert done["notifications heard"] > 0
