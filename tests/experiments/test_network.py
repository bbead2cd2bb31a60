"""The content-driven network: zones and routes by their definitions, and gateways as real processes over TCP."""

import json
import math
import random
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from experiments.network.origin import Origin
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


class Process:
    """A gateway started by a test, which ends it by its own handle."""

    def __init__(self, port, path):
        command = [sys.executable, "-m", "experiments.network.gateway", str(port), str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def ask(self):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            return json.loads(connection.makefile().readline())

    def ask_until(self, sequence):
        """Its answer once it has heard of everything up to `sequence`."""
        deadline = time.monotonic() + 120
        while (answer := self.ask())["sequence"] < sequence:
            assert time.monotonic() < deadline, f"a gateway is at {answer['sequence']}, not {sequence}"
            time.sleep(0.02)
        return answer["lists"]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def test_gateways_over_tcp_follow_and_one_killed_catches_up(tmp_path):
    rng, k = random.Random(11), 3
    watchers = [tuple(sorted((rng.randrange(24) / 8, rng.randrange(24) / 8))) for _ in range(40)]
    halves = [np.array([[-INF, -INF], [1.0, INF]]), np.array([[math.nextafter(1.0, 2), -INF], [INF, INF]])]
    paths, served = [], []
    for i, zone in enumerate(halves):
        served.append([w for w in watchers if zone[0, 0] <= w[0] <= zone[1, 0]])
        paths.append(tmp_path / f"watchers{i}.npz")
        np.savez(paths[i], range=np.array(served[i]), k=k, zone=zone)
    origin, state, gateways = Origin(k, log=40), {}, []

    def publish(times):
        for _ in range(times):
            number, x, y = rng.randrange(20), rng.randrange(24) / 8, rng.randrange(24) / 8
            if number in state and rng.random() < 0.2:
                x, y = state.pop(number)[0], INF
            else:
                state[number] = (x, y)
            origin.publish(number, x, y)

    def agree(gateway, ranges):
        expected = [sorted((y, n) for n, (x, y) in state.items() if l <= x <= r)[:k] for l, r in ranges]
        assert [[(y, n) for n, y in found] for found in gateway.ask_until(origin.mark())] == expected

    try:
        publish(15)
        gateways += [Process(origin.port, path) for path in paths]
        publish(30)
        for gateway, ranges in zip(gateways, served, strict=True):
            agree(gateway, ranges)
        gateways[0].kill()
        publish(60)
        gateways[0] = Process(origin.port, paths[0])
        publish(10)
        for gateway, ranges in zip(gateways, served, strict=True):
            agree(gateway, ranges)
        for cut_off_for in (10, 60):  # a broken connection: what was missed is in the log, or no longer
            origin.disconnect()
            publish(cut_off_for)
            for gateway, ranges in zip(gateways, served, strict=True):
                deadline = time.monotonic() + 60
                while origin.connected < 2:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                agree(gateway, ranges)
    finally:
        for gateway in gateways:
            gateway.kill()
        origin.close()
