"""The service's writer as a painter's source: after each commit what it touched is painted, all that waits in one sequence.

Nothing is kept of what was told: begun anew, or after Kafka was away, the topic's objects are compared with those that Kafka has.
So a change that was committed is painted, whenever the process ended. If another painter begins, this one stops. Notifications of
the topic's own subscriptions go to the gateways by a sink of the service, which sends them by the hash of the subscription's id.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from itertools import islice

import numpy as np
from confluent_kafka import KafkaException
from numpy.typing import NDArray

from tidings.boards.messages.family import Family, parse_family
from tidings.boards.messages.painted import Touched
from tidings.boards.paint.zones import Zones
from tidings.durable.opening import DurableTopic
from tidings.errors import SchemaError, TidingsError
from tidings.kafka.layout import FEWEST, Plan, named, ranges_between
from tidings.kafka.painter import Painter
from tidings.kafka.writer import Overtaken
from tidings.serve.delivery.sinks import BATCH, KAFKA, Sink, Target
from tidings.serve.hosting.hosted_topic import HostedTopic
from tidings.serve.service import Service

log = logging.getLogger("tidings.serve")
GATEWAYS = "gateways"
"""The name of the sink."""
LOOK = 0.05
REST = 1.0
"""Seconds."""
SAMPLE = 10_000
"""Ranges of which zones are cut, at most."""


class Painting:
    """One topic's. Its thread alone has the painter."""

    def __init__(self, hosted: HostedTopic, brokers: str, families: Sequence[str], zones: int, sparse: bool) -> None:
        topic = hosted.topic
        if topic.key is None:
            raise SchemaError(f"topic {topic.name!r} has no key: messages tell of the objects of a keyed topic")
        found = tuple(parse_family(topic.schema, family) for family in families)
        self._topic, self._brokers = topic, brokers
        cuts = tuple(Zones.balanced(sample_of(topic, family), zones) for family in found)
        self._plan = Plan(topic.name, topic.schema, topic.key, found, cuts, sparse)
        self._touched = Touched()
        self._news, self._stopped = threading.Event(), threading.Event()
        hosted.listeners.append(self._news.set)
        self._thread = threading.Thread(target=self._run, name=f"the painter of {topic.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._news.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._touched.forget()
            try:
                painter = Painter(self._brokers, self._plan)
                try:
                    self._paint(painter)
                finally:
                    painter.close()
            except Overtaken as error:
                log.error(
                    "a topic is painted by another: until this service starts anew",
                    exc_info=error,
                    extra={"topic": self._plan.topic},
                )
                return
            except (KafkaException, TidingsError) as error:
                log.error("a topic cannot be painted", exc_info=error, extra={"topic": self._plan.topic})
                self._stopped.wait(REST)

    def _paint(self, painter: Painter) -> None:
        self._news.set()
        while not self._stopped.is_set():
            if not self._news.wait(LOOK):
                painter.look()
                continue
            self._news.clear()
            changes = self._topic.touched(self._touched, painter.keys if painter.sequence else ())
            if changes:
                painter.publish(changes, self._topic.publisher.clock or 0)


def sample_of(topic: DurableTopic, family: Family) -> NDArray[np.float64]:
    """Ranges by which zones are cut: of the topic's own subscriptions of the family, else between values that objects have."""
    every = islice(topic.store.subscriptions(), SAMPLE)
    ranges = [family.range_of(topic.schema, s.clauses, s.by, s.k) for s in every]
    found = np.array([range for range in ranges if range is not None]).reshape(-1, 2)
    if len(found) >= FEWEST:
        return found
    stands = family.stands(topic.schema)
    return ranges_between(stands(event.values)[0] for event in islice(topic.publisher.events, SAMPLE))


class Painters:
    """Of all topics of a service that are painted; `paint` says `topic=attribute:by:k`, once for each family."""

    def __init__(self, brokers: str, paint: Sequence[str], zones: int, sparse: bool) -> None:
        self._brokers, self._zones, self._sparse = brokers, zones, sparse
        self._families: dict[str, list[str]] = {}
        for said in paint:
            topic, _, family = said.partition("=")
            self._families.setdefault(topic, []).append(family)
        self._running: list[Painting] = []
        self._starting: asyncio.Task[None] | None = None

    def start(self, service: Service) -> None:
        self._starting = asyncio.create_task(self._start(service))

    async def _start(self, service: Service) -> None:
        """Once the topics are open; one that is made later is painted from then on."""
        await service.opened()
        waiting = dict(self._families)
        while waiting:
            for name in [name for name in waiting if name in service.topics]:
                await self._begin(service, name, waiting.pop(name))
            await asyncio.sleep(REST)

    async def _begin(self, service: Service, name: str, families: list[str]) -> None:
        hosted = service.topic(name)
        try:
            made = await asyncio.to_thread(Painting, hosted, self._brokers, families, self._zones, self._sparse)
        except TidingsError as error:
            log.error("a topic cannot be painted", exc_info=error, extra={"topic": name})
            return
        self._running.append(made)
        at = hosted.folder.name
        if (at, GATEWAYS) not in service.couriers.known:
            target = Target(KAFKA, brokers=self._brokers, topic=named(hosted.name, "notes"), batch=BATCH)
            sink = Sink(GATEWAYS, target, [], service.tails[at].at)
            await asyncio.to_thread(service.couriers.sinks.put, at, sink)
            service.couriers.start(service.tails[at], sink)

    async def stop(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        for painting in self._running:
            await asyncio.to_thread(painting.stop)
