"""`follow`: a stream of subscription changes becomes new segments and manifests of a topic that is there.

A row has `id`, `op` (`upsert`, which null also means, or `delete`) and the columns of a subscription (columnar or `filter`). Or
it has `key` and `value`, as of a compacted Kafka topic: the id, and the subscription as JSON, null to delete it. In a micro-batch
the last row of an id counts. The driver applies it and flushes: running `match` queries see the new manifest at their next
micro-batch.

A micro-batch that runs twice changes nothing the second time: upserts and deletes say what shall be, and the time from which
windows count is pinned with the batch (`pins`), so they do not begin anew.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from tidings.durable.opening import DurableTopic, open_topic
from tidings.errors import BulkError, SubscriptionError, TidingsError, shown
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import subscriptions_from_arrow
from tidings.model.door.event import parse_json
from tidings.spark.frames.pins import pinned, refuse_parts

OPERATIONS = ("upsert", "delete")


def follow(
    changes: DataFrame,
    topic: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    on_error: str = "raise",
    trigger: dict[str, Any] | None = None,
) -> StreamingQuery:
    """Start the query that applies `changes`. It holds the topic's folder for writing until it ends.

    `on_error="skip"` leaves out rows that are refused, and writes them with the reason to `checkpoint/refused/<batch>.json`.
    """
    if "id" not in changes.columns and not {"key", "value"} <= set(changes.columns):
        raise SubscriptionError(f"changes have neither 'id' nor 'key' and 'value': they have {', '.join(changes.columns)}")
    refuse_parts(Path(topic))
    writer = open_topic(topic)
    with ExitStack() as unstarted:
        unstarted.callback(writer.close)
        apply = applier(writer, Path(checkpoint), on_error)
        started = changes.writeStream.foreachBatch(apply).option("checkpointLocation", str(checkpoint))
        query = started.trigger(**(trigger or {"processingTime": "0 seconds"})).start()
        unstarted.pop_all()
    threading.Thread(target=_close_after, args=(query, writer), name="tidings-follow", daemon=True).start()
    return query


def _close_after(query: StreamingQuery, writer: DurableTopic) -> None:
    try:
        query._jsq.awaitTermination()
    finally:
        writer.close()


def applier(writer: DurableTopic, checkpoint: Path, on_error: str) -> Callable[[DataFrame, int], None]:
    def apply(frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        if len(table):
            query = str(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
            time = pinned(writer.folder, f"follow-{query}", batch).time
            refused = apply_changes(writer, table, time, on_error)
            if refused:
                kept = checkpoint / "refused" / f"{batch}.json"
                kept.parent.mkdir(exist_ok=True)
                kept.write_text(json.dumps(refused))

    return apply


def apply_changes(topic: DurableTopic, table: pa.Table, time: int, on_error: str = "raise") -> list[dict[str, str]]:
    """Apply the last change of each id; what was refused, with the reason."""
    if "id" not in table.column_names:
        return apply_json(topic, last_of_each(table, "key"), time, on_error)
    table = last_of_each(table, "id")
    deletes = pa.array(np.zeros(len(table), np.bool_))
    if "op" in table.column_names:
        unknown = (
            table["op"].drop_null().unique().filter(pc.invert(pc.is_in(table["op"].drop_null().unique(), pa.array(OPERATIONS))))
        )
        if len(unknown):
            raise SubscriptionError(f"op is {str(unknown[0])!r}: 'upsert' or 'delete' is accepted")
        deletes = pc.equal(table["op"], "delete").fill_null(False).combine_chunks()
        table = table.drop_columns(["op"])
    upserts = table.filter(pc.invert(deletes))
    checked = subscriptions_from_arrow(topic.schema, Vocabularies(topic.schema), upserts, on_error="skip")
    if checked.refused and on_error == "raise":
        raise BulkError("subscriptions", checked.refused)
    topic.unsubscribe_many(table["id"].filter(deletes).to_pylist())
    if len(checked):
        topic.subscribe_many(checked.table, time=time / 1_000_000)
    topic.flush()
    return [{"id": str(upserts["id"][row]), "reason": reason} for row, reason in checked.refused]


def apply_json(topic: DurableTopic, table: pa.Table, time: int, on_error: str) -> list[dict[str, str]]:
    """The same for keys and JSON values, one subscription at a time."""
    gone, refused = [], []
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        id = key.decode() if isinstance(key, bytes) else key
        if value is None:
            gone.append(id)
            continue
        try:
            topic.subscribe(time=time / 1_000_000, **{**read_object(value), "id": id})
        except TidingsError as error:
            if on_error == "raise":
                raise
            refused.append({"id": id, "reason": str(error)})
    topic.unsubscribe_many(gone)
    topic.flush()
    return refused


def read_object(value: str | bytes) -> dict[str, Any]:
    read = parse_json(value)
    if not isinstance(read, dict):
        raise SubscriptionError(f"subscription {shown(read)}: an object as {{'filter': ..., 'k': ...}} is accepted")
    return read


def last_of_each(table: pa.Table, name: str) -> pa.Table:
    """The last row of each id, in order."""
    ids = table[name].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()[::-1]
    _, last = np.unique(ids, return_index=True)
    return table.take(pa.array(np.sort(len(ids) - 1 - last)))
