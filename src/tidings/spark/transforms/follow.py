"""`follow`: a stream of subscription changes becomes new segments and manifests of a topic that is there.

A row has `id`, `op` (`upsert`, which null also means, or `delete`) and the columns of a subscription (columnar or `filter`). Or
it has `key` and `value`, as of a compacted Kafka topic: the id, and the subscription as JSON, null to delete it. The driver
applies a micro-batch and flushes: running `match` queries see the new manifest at their next micro-batch.

Order: of the changes of one id in a micro-batch the one that is greatest in the first of ORDERS that the changes have counts; `seq`
and `time` are yours, `offset` is Kafka's, in which all of a key stand in one partition. Rows themselves have no order, since a
micro-batch may have many files and partitions: two changes of one id that no column tells apart are refused.

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
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from tidings.durable.opening import DurableTopic, open_topic
from tidings.errors import BulkError, SubscriptionError, TidingsError, shown
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import subscriptions_from_arrow
from tidings.model.door.event import parse_json
from tidings.spark.frames.pins import pinned, refuse_parts

OPERATIONS = ("upsert", "delete")
ORDERS = ("seq", "time", "offset")

Refused: TypeAlias = list[dict[str, str]]


def follow(
    changes: DataFrame,
    topic: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    on_error: str = "raise",
    trigger: dict[str, object] | None = None,
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


def apply_changes(topic: DurableTopic, table: pa.Table, time: int, on_error: str = "raise") -> Refused:
    """Apply the last change of each id; what was refused, with the reason."""
    columnar = "id" in table.column_names
    table, refused = last_of_each(table, "id" if columnar else "key")
    if refused and on_error == "raise":
        raise SubscriptionError(refused[0]["reason"])
    return refused + (apply_columns if columnar else apply_json)(topic, table, time, on_error)


def apply_columns(topic: DurableTopic, table: pa.Table, time: int, on_error: str) -> Refused:
    deletes = pa.array(np.zeros(len(table), np.bool_))
    if "op" in table.column_names:
        unknown = [op for op in table["op"].unique().to_pylist() if op not in (None, *OPERATIONS)]
        if unknown:
            raise SubscriptionError(f"op is {unknown[0]!r}: 'upsert' or 'delete' is accepted")
        deletes = pc.equal(table["op"], "delete").fill_null(False).combine_chunks()
    ids = table["id"].filter(deletes).to_pylist()
    upserts = table.drop_columns([name for name in ("op", *ORDERS) if name in table.column_names]).filter(pc.invert(deletes))
    checked = subscriptions_from_arrow(topic.schema, Vocabularies(topic.schema), upserts, on_error="skip")
    if checked.refused and on_error == "raise":
        raise BulkError("subscriptions", checked.refused)
    topic.unsubscribe_many(ids)
    if len(checked):
        topic.subscribe_many(checked.table, time=time / 1_000_000)
    topic.flush()
    return [{"id": str(upserts["id"][row]), "reason": reason} for row, reason in checked.refused]


def apply_json(topic: DurableTopic, table: pa.Table, time: int, on_error: str) -> Refused:
    """The same for keys and JSON values, one subscription at a time."""
    gone, refused = [], []
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        id = _text(key)
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


def read_object(value: str | bytes) -> dict[str, Any]:
    read = parse_json(value)
    if not isinstance(read, dict):
        raise SubscriptionError(f"subscription {shown(read)}: an object as {{'filter': ..., 'k': ...}} is accepted")
    return read


def last_of_each(table: pa.Table, name: str) -> tuple[pa.Table, Refused]:
    """The last change of each id, and the ids of which no column says which is the last."""
    ordered_by = next((column for column in ORDERS if column in table.column_names), None)
    id = table[name].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    rank = np.zeros(len(table), np.int64) if ordered_by is None else _ranks(table[ordered_by].combine_chunks())
    order = np.lexsort((rank, id))
    id, rank = id[order], rank[order]
    last = np.append(id[1:] != id[:-1], True)
    tied = np.append(False, (id[1:] == id[:-1]) & (rank[1:] == rank[:-1]))
    unsure = map(_text, table[name].take(pa.array(order[last & tied])).to_pylist())
    why = "in several changes of one micro-batch: a column 'seq' or 'time' that differs in them is accepted, to tell the last"
    refused = [{"id": one, "reason": f"{name} is {one!r} {why}"} for one in unsure]
    return table.take(pa.array(np.sort(order[last & ~tied]))), refused


def _ranks(column: pa.Array) -> NDArray[np.int64]:
    """The place of each value among the distinct ones; -1 for null."""
    coded = column.dictionary_encode()
    place = np.append(np.empty(len(coded.dictionary), np.int64), -1)
    place[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    ranks: NDArray[np.int64] = place[coded.indices.fill_null(len(coded.dictionary)).to_numpy()]
    return ranks


def _text(id: str | bytes) -> str:
    return id.decode() if isinstance(id, bytes) else id
