"""`paint`: updates of a keyed topic's objects in, records for gateways out.

Families are painted as `board(messages=True)` paints them, each in one task; the driver deals out what they say to the partitions
of the zones and writes a micro-batch in one transaction of Kafka (`gateway_sink`), in the records that the service writes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from tidings.durable.snapshots import snapshots_at
from tidings.errors import EventError, StorageError, TidingsError
from tidings.spark.frames.arrow_stage import map_arrow
from tidings.spark.frames.session import is_connect
from tidings.spark.transforms.board import TOLD, UPDATES, UpdatePacker, families_of, planned
from tidings.spark.transforms.follow import start


def paint(
    updates: DataFrame,
    topic: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    brokers: str,
    families: Sequence[str],
    zones: int = 8,
    sparse: bool = False,
    trigger: dict[str, object] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start the query that paints `updates`, events of the keyed topic at `topic`, for gateways of that topic's name.

    `families` are as `price:-stars:20`; their planes are cut into up to so many `zones` when they are first painted, by the values
    of the first micro-batch. `sparse` paints only where gateways say that there are watchers. A micro-batch is a sequence and is
    told once, however often it runs. A query with a new checkpoint goes on from the objects that Kafka has. Needs `pip install
    'tidings[spark,kafka]'`, on executors too.

    >>> import tidings as td
    >>> with td.open(folder, "homes", {"price": td.Number(), "stars": td.Number()}, key="home"):
    ...     pass
    >>> homes = spark.createDataFrame([("h1", 900.0, 4.0), ("h2", 700.0, 3.0)], "home string, price double, stars double")
    >>> homes.write.parquet(f"{folder}/updates")
    >>> updates = spark.readStream.schema(homes.schema).parquet(f"{folder}/updates")
    >>> from tidings.spark import paint
    >>> kafka = {"brokers": brokers, "families": ["price:stars:20"], "zones": 2}                # brokers are as "localhost:9092"
    >>> query = paint(updates, folder, f"{folder}/checkpoint", **kafka, trigger={"availableNow": True})
    >>> query.awaitTermination()
    >>> [report["sink"]["description"] for report in query.recentProgress]
    ['ForeachBatchSink']
    """
    try:
        from tidings.spark.state.gateway_painter import GatewayProcessor
        from tidings.spark.transforms.gateway_sink import GatewaySink
    except ImportError as error:
        raise TidingsError(f"paint needs Kafka's client, which is not installed ({error}): pip install 'tidings[kafka]'") from error
    if not updates.isStreaming:
        raise EventError("updates are no stream: paint takes what readStream gives")
    if is_connect(updates):
        raise StorageError("paint writes from the driver, which Spark Connect has elsewhere: a session of the driver is accepted")
    place = snapshots_at(topic)
    pin, view = planned(updates, place, "paint")
    painted = families_of(view, families)
    packed = map_arrow(updates, UpdatePacker(place, pin, len(painted)), UPDATES).groupBy("shard")
    told = packed.transformWithState(GatewayProcessor(place, pin, painted, brokers), TOLD, "append", "none")
    sink = GatewaySink(brokers, view, painted, zones, sparse)
    every = trigger or {"processingTime": "0 seconds"}
    query = start(told, sink, checkpoint, every, name or f"tidings paint {view.manifest.topic}")
    threading.Thread(target=sink.attend, args=(query,), name="tidings-paint", daemon=True).start()
    return query
