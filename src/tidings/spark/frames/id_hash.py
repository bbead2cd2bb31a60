"""Ids spread over so many groups by a hash that is the same in every process.

Two hashes, and neither can change, for checkpoints and topics' folders depend on which it is. `spread` is pandas' own, by which
boards have their shards and topics their parts. `spark_shards` is Spark's `xxhash64`, by which windows have theirs: what Spark
computes of a column, here of the ids that a Python worker has at hand.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

U32 = 2**32 - 1
U64 = np.uint64
PRIME1, PRIME2, PRIME3 = U64(0x9E3779B185EBCA87), U64(0xC2B2AE3D27D4EB4F), U64(0x165667B19E3779F9)
PRIME4, PRIME5 = U64(0x85EBCA77C2B2AE63), U64(0x27D4EB2F165667C5)
SEED = 42
"""Spark's."""


def spread(ids: pa.Array, count: int) -> NDArray[np.int64]:
    """A number below `count` for each id."""
    hashed = pd.util.hash_array(ids.to_numpy(zero_copy_only=False).astype(object), categorize=False)
    number: NDArray[np.int64] = (hashed % np.uint64(count)).astype(np.int64)
    return number


def spark_shards(ids: pa.StringArray, count: int) -> NDArray[np.int32]:
    """A number below `count` for each id: `pmod(xxhash64(id), count)`."""
    signed = spark_hash(ids).view(np.int64)
    shard: NDArray[np.int32] = np.mod(signed, count).astype(np.int32)
    return shard


def even_shards(partitions: int) -> int:
    """How many shards, one to four for each partition, are spread most evenly when Spark shuffles them by number."""
    counts, best = [0] * partitions, (math.inf, 0)
    for number in range(4 * partitions):
        counts[_murmur3(number) % partitions] += 1
        shards = number + 1
        if shards >= partitions:
            best = min(best, (max(counts) * partitions / shards, shards))
    return best[1]


def _murmur3(number: int) -> int:
    """Spark's hash of an integer, by which it chooses the partition."""
    word = number * 0xCC9E2D51 & U32
    word = (word << 15 | word >> 17) & U32
    mixed = SEED ^ (word * 0x1B873593 & U32)
    mixed = ((mixed << 13 | mixed >> 19) & U32) * 5 + 0xE6546B64 & U32
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & U32
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & U32
    mixed ^= mixed >> 16
    return mixed - (mixed >> 31 << 32)


def spark_hash(ids: pa.StringArray) -> NDArray[np.uint64]:
    """XXH64 of each id's bytes, those of one length together, so that every step is one on arrays."""
    if not len(ids):
        return np.empty(0, np.uint64)
    _, ends, text = ids.buffers()
    end = np.frombuffer(ends, np.int32, len(ids) + 1, ids.offset * 4)
    letters = np.frombuffer(text, np.uint8) if text is not None else np.empty(0, np.uint8)
    length, made = np.diff(end), np.empty(len(ids), np.uint64)
    for size in np.unique(length).tolist():
        here = np.flatnonzero(length == size)
        made[here] = xxh64(letters[end[here][:, None] + np.arange(size)])
    return made


def xxh64(text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Of texts of one length, a row each."""
    count, size = text.shape
    at = 0
    if size >= 32:
        first, second = int(PRIME1), int(PRIME2)
        start = [U64(one % 2**64) for one in (SEED + first + second, SEED + second, SEED, SEED - first)]
        lanes = [np.full(count, one) for one in start]
        while at + 32 <= size:
            lanes = [_round(lane, _word(text, at + 8 * number, 8)) for number, lane in enumerate(lanes)]
            at += 32
        hashed = sum((_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.zeros(count, np.uint64))
        for lane in lanes:
            hashed = (hashed ^ _round(np.zeros(count, np.uint64), lane)) * PRIME1 + PRIME4
    else:
        hashed = np.full(count, U64(SEED) + PRIME5)
    hashed = hashed + U64(size)
    while at + 8 <= size:
        hashed = _rotated(hashed ^ _round(np.zeros(count, np.uint64), _word(text, at, 8)), 27) * PRIME1 + PRIME4
        at += 8
    if at + 4 <= size:
        hashed = _rotated(hashed ^ (_word(text, at, 4) * PRIME1), 23) * PRIME2 + PRIME3
        at += 4
    for place in range(at, size):
        hashed = _rotated(hashed ^ (text[:, place].astype(np.uint64) * PRIME5), 11) * PRIME1
    for shift, prime in ((33, PRIME2), (29, PRIME3)):
        hashed = (hashed ^ (hashed >> U64(shift))) * prime
    mixed: NDArray[np.uint64] = hashed ^ (hashed >> U64(32))
    return mixed


def _word(text: NDArray[np.uint8], at: int, size: int) -> NDArray[np.uint64]:
    kind = np.dtype("<u8" if size == 8 else "<u4")
    word: NDArray[np.uint64] = np.ascontiguousarray(text[:, at : at + size]).view(kind)[:, 0].astype(np.uint64)
    return word


def _round(lane: NDArray[np.uint64], word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return _rotated(lane + word * PRIME2, 31) * PRIME1


def _rotated(word: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    turned: NDArray[np.uint64] = (word << U64(bits)) | (word >> U64(64 - bits))
    return turned
