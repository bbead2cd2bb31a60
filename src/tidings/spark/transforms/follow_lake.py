"""`follow` for a topic in a lake: a micro-batch of changes becomes the next manifest, by the executors, without a registry.

The driver reads the changes, gives codes to strings that are new, and says in which part each subscription is to stand. A task a
part then lets everybody go who was changed or deleted, wherever he stood, takes in those who come, merges what is due, and uploads
(`durable.lake.changing`); so a subscription whose cell changed moves. The driver commits one manifest for all parts. It says which
micro-batch it is of, so one that runs again changes nothing.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidings.durable.lake.address import place_of
from tidings.durable.lake.changing import Added, ChangedPart, PartChanger, added_batch, added_records
from tidings.durable.lake.lake import Lake, Uploaded
from tidings.durable.lake.lake_manifest import LakeManifest
from tidings.durable.lake.objects import objects_at
from tidings.durable.manifest import save_vocabularies
from tidings.durable.snapshots import LakeSnapshots
from tidings.errors import SubscriptionError, TidingsError
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.door.subscription import Subscription, make_subscription
from tidings.model.values.schema import Schema
from tidings.rank.relevance import relevance_of
from tidings.spark.frames.arrow_stage import Batches, spark_type
from tidings.spark.frames.id_hash import spread
from tidings.spark.frames.pins import pinned, query_of
from tidings.spark.frames.session import is_connect
from tidings.spark.parts.build_lake import changed_from, codes_of
from tidings.spark.parts.cut import Cut
from tidings.spark.parts.split_part import split_parts
from tidings.spark.transforms.changes import Refused, gone_and_set, last_of_each, read_object, text_of
from tidings.topic.moving import placed_within

MADE = {"part": pa.int64(), "made": pa.string()}


@dataclass(frozen=True, slots=True)
class RefusedChanges:
    """Where the changes that were refused are kept with the reason: `checkpoint/refused/<batch>.json`."""

    checkpoint: str | os.PathLike[str]
    on_error: str

    def keep(self, batch: int, refused: Refused) -> None:
        if refused:
            objects_at(place_of(self.checkpoint)).put(f"refused/{batch}.json", json.dumps(refused).encode())


@dataclass(frozen=True, slots=True)
class Work:
    """What a micro-batch does to a topic: these ids leave, those come, in the codes of `codes`."""

    lake: Lake
    base: LakeManifest
    codes: Uploaded | None
    gone: pa.StringArray
    coming: dict[int, Added]

    def change(self, part: int) -> ChangedPart:
        changer = PartChanger(self.lake, self.base, self.base.seq + 1, self.vocabularies())
        return changer.change(part, self.gone, self.coming.get(part))

    def vocabularies(self) -> Vocabularies:
        if self.codes is None:
            return codes_of(self.lake, self.base)
        sums = {} if self.codes.sum is None else {self.codes.name: self.codes.sum}
        return codes_of(
            self.lake, replace(self.base, vocabulary=self.codes.name, sizes={self.codes.name: self.codes.size}, sums=sums)
        )

    def on_executors(self, spark: SparkSession, parts: list[int]) -> list[tuple[int, ChangedPart]]:
        """Each part by a task of its own."""

        def change(numbers: Batches) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch["id"].to_pylist():
                    made = json.dumps(asdict(self.change(parts[number])))
                    yield pa.record_batch([[parts[number]], [made]], schema=pa.schema(list(MADE.items())))

        found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(change, spark_type(MADE)).toArrow()
        return [(row["part"], changed_from(row["made"])) for row in found.to_pylist()]


@dataclass(frozen=True, slots=True)
class LakeFollower:
    topic: LakeSnapshots
    refused: RefusedChanges

    def __call__(self, frame: DataFrame, batch: int) -> None:
        table, query = frame.toArrow(), follower_of(frame, self.refused.checkpoint)
        base = self.topic.lake.must_have()
        if not len(table) or base.applied.get(query, -1) >= batch:
            return
        time = pinned(self.topic, query, batch).time
        work, refused = self.work(base, table, time)
        parts = self.touched(work)
        if len(parts) == 1:
            made = [(parts[0], work.change(parts[0]))]
        else:
            made = work.on_executors(frame.sparkSession, parts)
        self.refused.keep(batch, refused)
        changed = next_manifest(work, made, {**base.applied, query: batch})
        self.topic.lake.commit(split_parts(self.topic.lake, changed, work.vocabularies()))

    def work(self, base: LakeManifest, table: pa.Table, time: int) -> tuple[Work, Refused]:
        columnar = "id" in table.column_names
        table, refused = last_of_each(table, "id" if columnar else "key")
        self._raise(refused)
        codes = codes_of(self.topic.lake, base)
        known = codes.size
        gone, added, bad = (columns_of if columnar else records_of)(base, codes, table, time)
        self._raise(bad)
        made = None
        if codes.size != known:
            made = self.topic.lake.make("vocabulary", lambda path: save_vocabularies(path, codes), base.sizes)
        ids = pa.concat_arrays([pa.array(gone, pa.string()), added.rows.ids()])
        return Work(self.topic.lake, base, made, ids, routed(base, added)), refused + bad

    def _raise(self, refused: Refused) -> None:
        if refused and self.refused.on_error == "raise":
            raise SubscriptionError(refused[0]["reason"])

    def touched(self, work: Work) -> list[int]:
        """The parts in which somebody may leave, which are all unless the id tells, and those to which somebody comes."""
        cut = None if work.base.cut is None else Cut(**work.base.cut)
        if cut is not None and cut.attribute is None:
            leaving = set(spread(work.gone, cut.parts).tolist()) & set(work.base.parts)
        else:
            leaving = set(work.base.parts)
        return sorted(leaving | set(work.coming))


def columns_of(base: LakeManifest, codes: Vocabularies, table: pa.Table, time: int) -> tuple[list[str], Added, Refused]:
    gone, upserts = gone_and_set(table)
    batch = subscriptions_from_arrow(base.schema_read, codes, upserts, on_error="skip")
    refused = [{"id": str(upserts["id"][row]), "reason": f"row {row}: {reason}"} for row, reason in batch.refused]
    return gone["id"].to_pylist(), added_batch(batch, time), refused


def records_of(base: LakeManifest, codes: Vocabularies, table: pa.Table, time: int) -> tuple[list[str], Added, Refused]:
    """The same for keys and JSON values."""
    gone, made, refused = [], [], []
    schema = base.schema_read
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        id = text_of(key)
        if value is None:
            gone.append(id)
            continue
        try:
            made.append(subscription_of(schema, {**read_object(value), "id": id}, time))
        except TidingsError as error:
            refused.append({"id": id, "reason": str(error)})
    return gone, added_records(schema, codes, made, time), refused


def routed(base: LakeManifest, added: Added) -> dict[int, Added]:
    """Those who come, by the part they are to stand in."""
    if not len(added.rows):
        return {}
    if base.cut is None:
        return {0: added}
    part = Cut(**base.cut).subscriptions(base.schema_read, added.rows)
    return {int(one): added.take(np.flatnonzero(part == one)) for one in np.unique(part)}


def next_manifest(work: Work, made: list[tuple[int, ChangedPart]], applied: dict[str, int]) -> LakeManifest:
    base = work.base
    parts, sizes, sums = dict(base.parts), dict(base.sizes), dict(base.sums)
    if work.codes is not None:
        sizes[work.codes.name] = work.codes.size
        sums |= {} if work.codes.sum is None else {work.codes.name: work.codes.sum}
    for part, one in made:
        parts[part] = tuple(one.segments)
        sizes |= one.sizes
        sums |= one.sums
    return replace(
        base,
        number=base.number + 1,
        seq=base.seq + 1,
        parts={part: segments for part, segments in parts.items() if segments},
        vocabulary=base.vocabulary if work.codes is None else work.codes.name,
        sizes=sizes,
        sums=sums,
        applied=applied,
        writer=uuid.uuid4().hex,
    )


def subscription_of(schema: Schema, fields: dict[str, Any], time: int) -> Subscription:
    """As `Topic.subscribe` makes it of the same fields."""
    within = fields.pop("within", None)
    made = make_subscription(schema, fields.pop("id"), fields.pop("filter", None), **fields)
    if within is not None:
        made = placed_within(schema, made, within)
    if made.by is not None:
        relevance_of(schema, made.by)
    return replace(made, since=time) if made.is_ranked else made


def follower_of(frame: DataFrame, checkpoint: str | os.PathLike[str]) -> str:
    """As whom the query of a micro-batch is known to the topic. Spark Connect says it in the checkpoint alone."""
    if is_connect(frame):
        return f"follow-{query_of(checkpoint)}"
    return f"follow-{frame.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}"
