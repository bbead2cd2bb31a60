"""The content-driven network: zones and routes by their definitions."""

import math

import numpy as np
import pytest

from experiments.network.routing import Traffic, route
from experiments.network.topology import hops_between_brokers
from tidings.boards.paint.zones import Zones

INF = math.inf


@pytest.fixture(scope="module")
def zones():
    return Zones.joined(np.random.default_rng(3).random((60, 2)), 0.0, 1.0)


def test_zones_tile_the_space_and_outliers_have_an_owner(zones):
    zones.check()
    assert len(zones) == 61
    for l, r in np.random.default_rng(4).uniform(-1, 2, (200, 2)):
        owner = zones.owner(l, r)
        assert zones.meeting(np.array([[l, r], [l, r]])).tolist() == [owner]
    assert zones.owner(-INF, INF) in zones.meeting(np.array([[-INF, 0.9], [0.1, INF]]))


def test_a_route_reaches_every_zone_of_a_rectangle_once_over_neighbours(zones):
    rng = np.random.default_rng(5)
    for _ in range(60):
        box = np.sort(rng.uniform(-0.2, 1.2, (2, 2)), 0)
        start = int(rng.integers(len(zones)))
        links = route(zones, start, box)
        assert all(b in zones.neighbours[a] for a, b in links)
        arrivals = [b for _, b in links]
        assert len(arrivals) == len(set(arrivals))
        assert set(zones.meeting(box)) <= {start, *arrivals}
        sent = {start}
        for a, b in links:
            assert a in sent
            sent.add(b)


def test_traffic_counts_links_and_ip_hops(zones):
    distance = hops_between_brokers(300, len(zones), 1)
    assert (distance == distance.T).all()
    assert (np.diag(distance) == 0).all()
    traffic = Traffic(distance)
    traffic.begin()
    traffic.sent(24)
    traffic.carried([(0, 1), (1, 2)], 24)
    assert (traffic.server, traffic.most, traffic.overlay) == (24, 24, 48)
    assert traffic.ip == 24 * (distance[0, 1] + distance[1, 2])
