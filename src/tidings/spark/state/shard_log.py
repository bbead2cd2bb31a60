"""What Spark keeps of a shard between micro-batches, and what a worker keeps of it: one rule for windows and for boards.

A shard is a group of subscriptions whose state is one key of Spark's. The state holds

    head     JSON (`state_format.Head`): the step, the tokens of the last KEPT steps, at which step it was packed, sizes, facts
    log      step -> what that micro-batch did to the shard
    packed   number -> the whole shard as it stood at one step, in chunks

Every micro-batch is a step and adds one entry to the log, about as long as what came in; when the entries since the last packing
outweigh it by SMALL bytes, the shard is packed anew. The worker keeps the shards it served, as their owner holds them (arrays,
boards), each with its step and that step's token, which is random. Spark gives a partition to any worker of the executor: a copy
that is some steps behind is brought up by their entries, since the log keeps KEPT steps before the packing too. A copy with a token
that the state does not know, after a retry, a restart or a move to another machine, is not what the state holds: it is dropped, and
made again from it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from tidings.durable.snapshots import Snapshots
from tidings.errors import StorageError
from tidings.spark.frames.pins import micro_batch
from tidings.spark.frames.worker_upkeep import begin_task
from tidings.spark.state.state_format import Facts, Head, head_of

KEPT = 8
SMALL = 1_000_000
"""Bytes of log that are not worth packing."""
QUERIES_KEPT = 4

Held = TypeVar("Held")


class Keeper(Protocol[Held]):
    """What knows how a shard is held: the processor of windows, or of boards."""

    topic: Snapshots
    shards: int

    def restore(self, shard: int, packed: Sequence[bytes], steps: Sequence[bytes], facts: Facts) -> Held:
        """The shard as it stood when packed, and then after these steps; without both a new one."""

    def repeat(self, held: Held, steps: Sequence[bytes], facts: Facts) -> None:
        """Do again what these steps did."""

    def pack(self, held: Held) -> Iterable[bytes]:
        """All of it, in chunks."""


class Copy(NamedTuple):
    step: int
    token: str
    held: object


_copies: dict[tuple[str, str], dict[int, Copy]] = {}
"""This worker's, by (query, topic) and shard; the QUERIES_KEPT used last."""


class ShardLog(Generic[Held]):
    def __init__(self, handle: StatefulProcessorHandle, keeper: Keeper[Held], transform: str) -> None:
        begin_task()
        self._head = handle.getValueState("head", "body string")
        self._log = handle.getMapState("log", "step long", "body binary")
        self._packed = handle.getMapState("packed", "number long", "body binary")
        self._keeper, self._transform = keeper, transform
        self.head = Head()

    def open(self, shard: int) -> Held:
        """The shard of the key at hand, as it stood after its last step; `head` is its head."""
        body = self._head.get()
        self.head = Head(facts={"shards": self._keeper.shards}) if body is None else head_of(body[0])
        made = self.head.facts["shards"]
        if made != self._keeper.shards:
            sentence = f"this checkpoint was made with {made} shards, not {self._keeper.shards}: give {self._transform} that number"
            raise StorageError(sentence)
        copy = _copies.get(self._mine, {}).pop(shard, None)
        if copy is None or self.head.tokens.get(str(copy.step)) != copy.token:
            chunks = [bytes(self._packed.getValue((number,))[0]) for number in range(self.head.chunks)]
            return self._keeper.restore(shard, chunks, self._steps_after(self.head.packed_at), self.head.facts)
        held: Held = copy.held  # type: ignore[assignment]
        if copy.step < self.head.step:
            self._keeper.repeat(held, self._steps_after(copy.step), self.head.facts)
        return held

    def add(self, shard: int, held: Held, body: bytes, facts: Facts) -> None:
        """A step: what it did to the shard, which is now `held`."""
        head = self.head
        head.step += 1
        head.facts |= facts
        self._log.updateValue((head.step,), (body,))
        head.log_bytes += len(body)
        if head.log_bytes > head.packed_bytes + SMALL:
            self._pack(list(self._keeper.pack(held)))
        token = uuid.uuid4().hex
        head.tokens = {step: known for step, known in head.tokens.items() if int(step) >= head.step - KEPT}
        head.tokens[str(head.step)] = token
        self._head.update((head.to_json(),))
        mine = _copies.pop(self._mine, {})
        _copies[self._mine] = mine
        mine[shard] = Copy(head.step, token, held)
        for old in list(_copies)[:-QUERIES_KEPT]:
            del _copies[old]

    @property
    def _mine(self) -> tuple[str, str]:
        query, _ = micro_batch() or ("", 0)
        return query, self._keeper.topic.title

    def _steps_after(self, step: int) -> list[bytes]:
        return [bytes(self._log.getValue((later,))[0]) for later in range(step + 1, self.head.step + 1)]

    def _pack(self, chunks: Sequence[bytes]) -> None:
        head = self.head
        for number, body in enumerate(chunks):
            self._packed.updateValue((number,), (body,))
        for number in range(len(chunks), head.chunks):
            self._packed.removeKey((number,))
        for step in range(head.log_first, head.step - KEPT):
            self._log.removeKey((step,))
        head.chunks, head.packed_at, head.packed_bytes, head.log_bytes = len(chunks), head.step, sum(map(len, chunks)), 0
        head.log_first = max(head.log_first, head.step - KEPT)
