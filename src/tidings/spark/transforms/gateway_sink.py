"""What Spark's tasks painted, written to Kafka by the driver: a micro-batch is one sequence, one transaction, and told once.

With each goes a record of which query's micro-batch it is (`kafka.records.BATCH`), in the same transaction. A micro-batch that
Kafka has is not written again: its tasks run again for the state alone. If another has painted since, the state is not what Kafka
has, and the query stops; a new checkpoint takes over what is there.

Where gateways say where their watchers are, tasks paint for those, and gateways wait to hear that it is known: the writer tells
them between micro-batches (`attend`), never while tasks paint.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from tidings.boards.messages.family import Family
from tidings.boards.messages.record import VERSION, unpacked
from tidings.boards.paint.zones import Zones
from tidings.durable.manifest_view import View
from tidings.errors import StorageError, TidingsError
from tidings.kafka.layout import Plan, is_painted, ranges_between
from tidings.kafka.records import BATCH
from tidings.kafka.sketch import boxes_json
from tidings.kafka.writer import Writer, read_plan
from tidings.spark.state.gateway_painter import COVER
from tidings.spark.state.state_format import from_bytes

LOOK = 100
"""Milliseconds."""
Told = dict[str, Any]
"""A row of `gateway_painter`."""


class GatewaySink:
    def __init__(self, brokers: str, view: View, families: Sequence[Family], zones: int, sparse: bool) -> None:
        assert view.key is not None
        self._brokers, self._families, self._zones, self._sparse = brokers, tuple(families), zones, sparse
        self._topic, self._schema, self._key = view.manifest.topic, view.schema, view.key
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._found: tuple[str, int] | None = None
        """whose micro-batch Kafka had last when the writer began"""
        self._last: int | None = None
        """the micro-batch of this query that Kafka has; None until the first was compared"""
        self._failure: Exception | None = None
        """between micro-batches: the next one raises it"""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        context = frame.sparkSession.sparkContext
        with self._lock:
            if self._failure is not None:
                raise self._failure
            # Before tasks run: they may take over what Kafka has, to which nobody else adds from here on.
            writer = self._opened()
            context.setLocalProperty(COVER, None if writer is None else self._cover(writer))
            told = [row for body in frame.toArrow()["body"] for row in from_bytes(body.as_buffer()).to_pylist()]
            if told:
                query = str(context.getLocalProperty("sql.streaming.queryId"))
                self._write(writer, sorted(told, key=lambda row: int(row["family"])), query, batch)

    def attend(self, query: StreamingQuery) -> None:
        """Take in what gateways say until the query ends; why it does is for whoever asks the query."""
        with suppress(StreamingQueryException):
            try:
                with self._lock:
                    if self._sparse:  # gateways wait, though no micro-batch may come
                        self._opened()
                while not query._jsq.awaitTermination(LOOK):
                    with self._lock:
                        if self._writer is not None:
                            self._writer.look()
            except (KafkaException, TidingsError) as error:
                self._failure = error
                query._jsq.awaitTermination()
        with self._lock:
            if self._writer is not None:
                self._writer.close()

    def _write(self, writer: Writer | None, told: Sequence[Told], query: str, batch: int) -> None:
        if writer is None:
            writer = self._open(self._cut(told[0]))
            if writer.sequence:
                raise TidingsError(f"another painter of {self._topic!r} has begun: start the query again to go on from its objects")
        if self._last is None:
            self._last = self._compared(query, told[0]["sequence"])
        if batch > self._last:
            mark = {BATCH: json.dumps({"query": query, "batch": batch}).encode()}
            said = [unpacked(row["said"], VERSION) for row in told]
            writer.write(dict(told[0]["objects"]) | mark, said, told[0]["at"])
            self._last = batch

    def _compared(self, query: str, sequence: int) -> int:
        """The last micro-batch of this query that Kafka has, -1 for none; `sequence` is the state's, with the one at hand."""
        if self._found is not None and self._found[0] == query:
            return self._found[1]
        if sequence > 1:
            raise StorageError(
                f"what Kafka has of {self._topic!r} is not what this query wrote last: with a new checkpoint it goes on from that"
            )
        return -1

    def _opened(self) -> Writer | None:
        """None as long as nobody has painted."""
        if self._writer is None and is_painted(self._brokers, self._topic):
            there = read_plan(self._brokers, self._topic)
            return None if there is None else self._open(there.zones)
        return self._writer

    def _open(self, zones: Sequence[Zones]) -> Writer:
        plan = Plan(self._topic, self._schema, self._key, self._families, tuple(zones), self._sparse)
        writer = self._writer = Writer(self._brokers, plan)
        self._found, self._last = writer.load().batch, None
        return writer

    def _cover(self, writer: Writer) -> str | None:
        """Where the watchers of each family are."""
        if writer.sketch is None:
            return None
        writer.look()
        return json.dumps([boxes_json(writer.sketch.cover(family.name)).decode() for family in self._families])

    def _cut(self, told: Told) -> list[Zones]:
        """By the objects that are there first."""
        values = [json.loads(body) for _, body in told["objects"] if body is not None]
        places = [family.stands(self._schema) for family in self._families]
        return [Zones.balanced(ranges_between(stands(value)[0] for value in values), self._zones) for stands in places]
