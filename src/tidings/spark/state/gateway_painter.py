"""Families painted as Spark state for gateways: what `kafka.writer` needs of a micro-batch, one row a family.

A state that is new takes over the objects that Kafka has, so that it paints what differs from them. Where watchers are, if gateways
say it, the driver knows before tasks run (COVER, a local property of Spark's: boxes of each family, as `kafka.sketch` has them).

| column     | type                | meaning                                                                                  |
|------------|---------------------|------------------------------------------------------------------------------------------|
| `family`   | int64               | its number                                                                               |
| `sequence` | int64               | how many micro-batches the state has seen, this one too                                   |
| `at`       | int64               | the instant, in microseconds                                                             |
| `said`     | binary              | all messages, as `boards.messages.record` packs them                                     |
| `objects`  | map, string: binary | records of objects that are others now, null for those that are gone; of the first family |
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from tidings.boards.messages.family import Family
from tidings.boards.messages.record import whole
from tidings.durable.snapshots import Snapshots
from tidings.kafka.layout import attributes_of, is_painted
from tidings.kafka.records import object_records
from tidings.kafka.replica import values_in
from tidings.kafka.sketch import boxes_from
from tidings.model.door.event import Event
from tidings.spark.frames.pins import Pin, local_property
from tidings.spark.state.shard_painter import PaintingProcessor, ShardPainter
from tidings.spark.state.state_format import to_bytes

COVER = "tidings.cover"
TOLD = pa.schema(
    [
        *(pa.field(name, pa.int64()) for name in ("family", "sequence", "at")),
        pa.field("said", pa.binary()),
        pa.field("objects", pa.map_(pa.string(), pa.binary())),
    ]
)


class GatewayProcessor(PaintingProcessor):
    def __init__(self, topic: Snapshots, pin: Pin, families: Sequence[Family], brokers: str) -> None:
        super().__init__(topic, pin, families)
        self.brokers = brokers

    def told(self, shard: ShardPainter, family: int, events: Sequence[Event], at: int, sequence: int) -> bytes | None:
        name = shard.view.manifest.topic
        if not sequence and is_painted(self.brokers, name):
            shard.replace([Event(key, values) for key, values in values_in(self.brokers, name).items()], at)
        painter = shard.paint(self.families[family], sequence).painters[self.families[family].name]
        cover = local_property(COVER)
        painter.cover(None if cover is None else boxes_from(json.loads(cover)[family].encode()))
        said, changes = shard.said(self.families[family], events, at, sequence)
        objects = object_records(changes, attributes_of(shard.view.schema, self.families)) if family == 0 else {}
        row = {"family": family, "sequence": sequence + 1, "at": at, "said": whole(said), "objects": list(objects.items())}
        return to_bytes(pa.Table.from_pylist([row], TOLD))
