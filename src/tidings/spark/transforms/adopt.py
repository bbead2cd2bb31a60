"""`adopt`: a query that has stopped for good goes on, because somebody says so.

A query refuses a topic that it has not read, or that is older than what it read, and what a lease no longer holds: going on by
itself could repeat a micro-batch with other answers. `adopt` says that this is known and wanted: after a topic was built anew or
moved, or a query lay still for longer than its lease. The micro-batch that was running when it stopped then runs with the newest
manifest. Windows go on: members that the topic no longer has are dropped, changed ones begin anew. Boards go on from their
objects; watchers that the query did not know before begin without their current list being told.
"""

from __future__ import annotations

import os

from tidings.durable.leases import PINS
from tidings.durable.snapshots import snapshots_at
from tidings.spark.frames.pins import ADOPTED, newest, pin_body, query_of


def adopt(topic: str | os.PathLike[str], checkpoint: str | os.PathLike[str]) -> None:
    """Let the query of `checkpoint`, which must not be running, go on with the topic at `topic` as it is now.

    >>> import tidings as td
    >>> with td.open(folder, "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.subscribe("ann", "price < 5", k=1, window="1 hour", by="-price", time=0)
    >>> events = spark.createDataFrame([("e1", 4.0, 60), ("e2", 3.0, 120)], "id string, price double, seconds long")
    >>> events = events.selectExpr("id", "price", "timestamp_seconds(seconds) AS time")
    >>> from tidings.spark import adopt, match
    >>> events.write.parquet(f"{folder}/events")
    >>> def run():
    ...     found = match(spark.readStream.schema(events.schema).parquet(f"{folder}/events"), folder)
    ...     query = found.writeStream.format("parquet").option("path", f"{folder}/found")
    ...     query = query.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    ...     query.awaitTermination()
    >>> run()
    >>> adopt(folder, f"{folder}/checkpoint")  # after the topic was built anew, or its leases have ended
    >>> run()
    """
    place = snapshots_at(topic)
    body = pin_body(newest(place))
    for reader in (query := query_of(checkpoint), f"follow-{query}"):
        pins = [one.name for one in place.notes.listed(f"{PINS}/{reader}/")]
        place.notes.put(f"{PINS}/{reader}/{ADOPTED}.json", body)
        place.notes.delete(name for name in pins if not name.endswith(f"/{ADOPTED}.json"))
