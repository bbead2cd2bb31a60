"""Joins, leaves, kills of gateways, restarts of the broker and splits of zones while updates flow: judged by the oracle after each.

Counts for the soak; `tests/serve/gateway/test_gateway.py` runs a few rounds.
"""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

from confluent_kafka import KafkaException

from tests.serve.gateway.world import World, world
from tidings.errors import TidingsError

ACTS = ("join", "leave", "kill", "kill", "kill", "kill", "restart", "split", "watch", "end")


def faults(seed: int, rounds: int, folder: Path | None = None) -> dict[str, int]:
    """What was done, by name."""
    with tempfile.TemporaryDirectory() as made, world(folder or Path(made), seed, zones=3) as flats:
        counts: dict[str, int] = {}
        flats.update(10)
        flats.join()
        flats.join()
        for i in range(12):
            begin(flats, f"w{i}", i % 3 == 0)
        for number in range(rounds):
            act = flats.draw.choice(ACTS)
            done = perform(flats, act, number)
            counts[done] = counts.get(done, 0) + 1
            for _ in range(flats.draw.randrange(1, 6)):
                flats.update(flats.draw.choice([1, 1, 4]))
            if number % 5 == 4:
                flats.agree()
        flats.agree()
        counts["notifications heard"] = sum(len(ear.heard) for ear in flats.ears.values())
        return counts


def begin(flats: World, name: str, hears: bool) -> None:
    l = flats.draw.randrange(80) / 8
    flats.watch(name, l, l + flats.draw.randrange(40) / 8, hears=hears)


def perform(flats: World, act: str, number: int) -> str:
    if act == "join" and len(flats.gateways) < 4:
        flats.join()
        return "gateways joined"
    if act in ("leave", "kill"):
        if len(flats.gateways) == 1:
            flats.join()
        flats.leave(signal.SIGTERM if act == "leave" else signal.SIGKILL)
        return "gateways left" if act == "leave" else "gateways killed"
    if act == "restart":
        flats.broker.stop()
        flats.broker.start()
        return "broker restarts"
    if act == "split" and flats.painter.plan.partitions < 8:
        flats.agree()
        try:
            flats.painter.split(flats.draw.randrange(flats.painter.plan.partitions))
        except (KafkaException, TidingsError):
            flats.painter.load()
            return "zones that could not be split"
        return "zones split"
    if act == "end" and len(flats.oracle.watchers) > len(flats.ears) + 1:
        name = next(name for name in flats.oracle.watchers if name not in flats.ears)
        flats.ask("DELETE", f"/watchers/{name}")
        flats.oracle.unwatch(name)
        return "watchers ended"
    flats.caught_up()
    begin(flats, f"late{number}", False)
    return "watchers begun"
