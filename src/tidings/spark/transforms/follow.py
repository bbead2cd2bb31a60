"""`follow`: a stream of subscription changes becomes new segments and manifests of a topic that is there.

A row has `id`, `op` (`upsert`, which null also means, or `delete`) and the columns of a subscription (columnar or `filter`). Or
it has `key` and `value`, as of a compacted Kafka topic: the id, and the subscription as JSON, null to delete it. The driver
applies a micro-batch and flushes: running `match` queries see the new manifest at their next micro-batch.

`changes` says which of several changes of one id counts. A topic in a lake, at a URL or in parts, is changed without a registry, by
the executors (`follow_lake`).

A micro-batch that runs twice changes nothing the second time: upserts and deletes say what shall be, and the time from which
windows count is pinned with the batch (`pins`), so they do not begin anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from tidings.durable.opening import DurableTopic, open_topic
from tidings.durable.snapshots import LakeSnapshots, Snapshots, snapshots_at
from tidings.errors import BulkError, SubscriptionError, TidingsError
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.spark.frames.pins import pinned
from tidings.spark.frames.session import is_connect
from tidings.spark.transforms.changes import Refused, gone_and_set, last_of_each, read_object, text_of
from tidings.spark.transforms.follow_lake import LakeFollower, RefusedChanges, follower_of


def follow(
    changes: DataFrame,
    topic: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    on_error: str = "raise",
    trigger: dict[str, object] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start the query that applies `changes`, with this name in Spark's UI. It holds the topic's folder for writing until it ends;
    by Spark Connect, in every micro-batch.

    `on_error="skip"` leaves out rows that are refused, and writes them with the reason to `checkpoint/refused/<batch>.json`.

    >>> import tidings as td
    >>> with td.open(folder, "deals", {"price": td.Number()}) as deals:
    ...     notes = deals.subscribe("ann", "price < 5", k=1, window="1 hour", by="-price", time=0)
    >>> from tidings.spark import follow
    >>> spark.createDataFrame([("bob", "price < 9")], "id string, filter string").write.parquet(f"{folder}/changes")
    >>> changes = spark.readStream.schema("id string, filter string").parquet(f"{folder}/changes")
    >>> query = follow(changes, folder, f"{folder}/checkpoint", trigger={"availableNow": True})
    >>> query.awaitTermination()
    >>> with td.open(folder, mode="r") as deals:
    ...     [subscription.id for subscription in deals]
    ['ann', 'bob']
    """
    if "id" not in changes.columns and not {"key", "value"} <= set(changes.columns):
        raise SubscriptionError(f"changes have neither 'id' nor 'key' and 'value': they have {', '.join(changes.columns)}")
    refused = RefusedChanges(checkpoint, on_error)
    every = trigger or {"processingTime": "0 seconds"}
    place = snapshots_at(topic)
    if isinstance(place, LakeSnapshots):
        place.lake.must_have()
        return start(changes, LakeFollower(place, refused), checkpoint, every, name or f"tidings follow {place.newest().topic}")
    if is_connect(changes):
        there = FolderFollower(os.fspath(topic), refused)
        return start(changes, there, checkpoint, every, name or f"tidings follow {place.newest().topic}")
    writer = open_topic(topic)
    with ExitStack() as unstarted:
        unstarted.callback(writer.close)
        query = start(changes, applier(writer, place, refused), checkpoint, every, name or f"tidings follow {writer.name}")
        unstarted.pop_all()
    threading.Thread(target=_close_after, args=(query, writer), name="tidings-follow", daemon=True).start()
    return query


def start(
    changes: DataFrame,
    apply: Callable[[DataFrame, int], None],
    checkpoint: str | os.PathLike[str],
    trigger: dict[str, object],
    name: str,
) -> StreamingQuery:
    """A session has one active query of a name: a second of a topic so called has its checkpoint in its name."""
    taken = {query.name for query in changes.sparkSession.streams.active}
    writer = changes.writeStream.foreachBatch(apply).option("checkpointLocation", str(checkpoint)).trigger(**trigger)
    return writer.queryName(f"{name}, {checkpoint}" if name in taken else name).start()


def _close_after(query: StreamingQuery, writer: DurableTopic) -> None:
    """Why a query failed is for whoever asks the query."""
    try:
        with suppress(StreamingQueryException):
            query._jsq.awaitTermination()
    finally:
        writer.close()


def applier(writer: DurableTopic, topic: Snapshots, refused: RefusedChanges) -> Callable[[DataFrame, int], None]:
    def apply(frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        if len(table):
            time = pinned(topic, follower_of(frame, refused.checkpoint), batch).time
            refused.keep(batch, apply_changes(writer, table, time, refused.on_error))

    return apply


@dataclass(frozen=True, slots=True)
class FolderFollower:
    """The same where the driver is another process (Spark Connect), to which this goes pickled: it opens the topic for each
    micro-batch, and holds it for so long."""

    folder: str
    refused: RefusedChanges

    def __call__(self, frame: DataFrame, batch: int) -> None:
        with closing(open_topic(self.folder)) as writer:
            applier(writer, snapshots_at(self.folder), self.refused)(frame, batch)


def apply_changes(topic: DurableTopic, table: pa.Table, time: int, on_error: str = "raise") -> Refused:
    """Apply the last change of each id; what was refused, with the reason."""
    columnar = "id" in table.column_names
    table, refused = last_of_each(table, "id" if columnar else "key")
    if refused and on_error == "raise":
        raise SubscriptionError(refused[0]["reason"])
    return refused + (apply_columns if columnar else apply_json)(topic, table, time, on_error)


def apply_columns(topic: DurableTopic, table: pa.Table, time: int, on_error: str) -> Refused:
    gone, upserts = gone_and_set(table)
    checked = subscriptions_from_arrow(topic.schema, Vocabularies(topic.schema), upserts, on_error="skip")
    if checked.refused and on_error == "raise":
        raise BulkError("subscriptions", checked.refused)
    topic.unsubscribe_many(gone["id"].to_pylist())
    if len(checked):
        topic.subscribe_many(checked.table, time=time / 1_000_000)
    topic.flush()
    return [{"id": str(upserts["id"][row]), "reason": reason} for row, reason in checked.refused]


def apply_json(topic: DurableTopic, table: pa.Table, time: int, on_error: str) -> Refused:
    """The same for keys and JSON values, one subscription at a time."""
    gone, refused = [], []
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        id = text_of(key)
        if value is None:
            gone.append(id)
            continue
        try:
            topic.take({**read_object(value), "id": id}, time=time / 1_000_000)
        except TidingsError as error:
            if on_error == "raise":
                raise
            refused.append({"id": id, "reason": str(error)})
    topic.unsubscribe_many(gone)
    topic.flush()
    return refused
