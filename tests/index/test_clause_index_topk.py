"""The k best clauses of an event, and that packed clauses come back as they were, over both segment structures."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.index.test_clause_index import SCHEMA, clauses, events
from tidings.index.blocks import layout as block_layout
from tidings.index.blocks.bitmaps import BlockBitmaps
from tidings.index.blocks.words import WordBlocks
from tidings.index.packed.packing import pack, unpack
from tidings.index.packed.record import DOUBLE, FIXED, SINGLE, ceil_code, fixed_code, floor_code, order_code, order_value
from tidings.model.columns.arrays import Vocabularies, encode_clauses, encode_events
from tidings.model.filter.clause import Clause
from tidings.model.values.schema import Number, Schema

quarters = st.integers(0, 3).map(lambda n: n / 4)
worded = st.builds(lambda clause: dataclasses.replace(clause, words=clause.words | {"red"}), clauses)
numbers = st.floats(allow_nan=False) | st.integers(-(10**10), 10**10).map(lambda n: n / 1e7) | st.floats(allow_nan=False, width=32)


def best(batch, owner, score, tie, values, k):
    """The k best owners with a clause that holds, from the definition."""
    found = {owner[i] for i, clause in enumerate(batch) if clause.holds(SCHEMA, values)}
    return sorted(found, key=lambda o: (-score[o], tie[o]))[:k]


@settings(max_examples=40, deadline=None)
@given(st.data(), st.booleans(), st.integers(0, 8), st.lists(events, max_size=3))
def test_topk_of_block_bitmaps(data, scored, k, stream):
    batch = data.draw(st.lists(clauses, max_size=8)) * data.draw(st.sampled_from([1, 100]))
    judge_topk(data, batch, k, stream, lambda columns, score: BlockBitmaps.build(columns, score=score if scored else None))


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 8), st.lists(events, max_size=3))
def test_topk_of_word_blocks(data, k, stream):
    batch = data.draw(st.lists(worded, max_size=8)) * data.draw(st.sampled_from([1, 100]))
    judge_topk(data, batch, k, stream, lambda columns, _: WordBlocks.build(columns))


def judge_topk(data, batch, k, stream, build):
    """Owners share clauses, scores tie, one owner is dead."""
    owners = max(1, len(batch) // 2)
    owner = [i % owners for i in range(len(batch))]
    score = np.array(
        data.draw(st.lists(quarters, min_size=owners, max_size=owners)) if owners < 9 else [i % 5 for i in range(owners)], float
    )
    tie = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(owners)
    died = np.full(owners, 7, np.uint32)
    died[data.draw(st.integers(0, owners - 1))] = 3
    vocabularies = Vocabularies(SCHEMA)
    columns = encode_clauses(SCHEMA, vocabularies, batch, owner)
    index = build(columns, score[columns.owner])
    event, clause = index.topk_batch(encode_events(SCHEMA, vocabularies, stream), k, score, tie, died, 3)
    living = [clause if died[o] > 3 else Clause(ranges={"a": (1.0, 0.0)}) for clause, o in zip(batch, owner, strict=True)]
    for row, values in enumerate(stream):
        assert columns.owner[clause[event == row]].tolist() == best(living, owner, score, tie, values, k)


@settings(max_examples=60, deadline=None)
@given(st.lists(clauses, max_size=6), st.randoms(use_true_random=False))
def test_packed_clauses_come_back(batch, random):
    columns = encode_clauses(SCHEMA, Vocabularies(SCHEMA), batch, range(len(batch)))
    order = np.array(random.sample(range(len(batch)), len(batch)), np.int64)
    home = np.full(len(batch), -1, np.int32)
    rows, back = unpack(pack(columns, np.arange(len(batch), dtype=np.int32), order, home), home, np.empty(0, np.uint8))
    assert rows.tolist() == [*range(len(batch))]
    assert described(back) == described(columns)


def described(columns):
    """Every clause in full, sets of codes written out."""
    result = []
    for c in range(len(columns)):
        preds = []
        for p in range(columns.pred_start[c], columns.pred_start[c + 1]):
            lo, hi, kind = columns.pred_lo[p], columns.pred_hi[p], columns.pred_kind[p]
            payload = columns.pool[int(lo) : int(lo + hi)].tolist() if kind in (1, 2) else (lo, hi)
            preds.append((int(columns.pred_dim[p]), int(kind), payload))
        words = columns.word[columns.word_start[c] : columns.word_start[c + 1]].tolist()
        result.append((int(columns.owner[c]), preds, columns.box[c].tolist(), words, bool(columns.residue[c])))
    return result


def test_columns_keep_homes_and_residue():
    batch = [Clause(words=frozenset(words), box=(0.0, 0.0, i, i)) for i, words in enumerate(["ab", "bc", "c", "abc"])]
    columns = encode_clauses(SCHEMA, Vocabularies(SCHEMA), batch, range(4))
    columns.residue[2] = True
    rows, back = WordBlocks.build(columns, np.array([3, 5, 6, 9], np.int32)).columns()
    assert rows.tolist() == [3, 5, 6, 9]
    assert described(back) == described(columns)


def test_word_blocks_refuse_a_clause_without_words():
    columns = encode_clauses(SCHEMA, Vocabularies(SCHEMA), [Clause()], [0])
    with pytest.raises(ValueError, match="clause 0 requires no word"):
        WordBlocks.build(columns)


@settings(max_examples=300, deadline=None)
@given(numbers, numbers, st.sampled_from([FIXED, SINGLE, DOUBLE]))
def test_codes_compare_as_values_do(stored, asked, codec):
    with np.errstate(over="ignore"):
        stored = {FIXED: fixed_code(stored) / 1e7, SINGLE: float(np.float32(stored)), DOUBLE: stored}[codec]
    if codec == FIXED and not abs(stored) < 214:
        stored = math.copysign(math.inf, stored)
    code = order_code(stored, codec)
    assert order_value(code, codec) == stored
    assert (stored <= asked) == (code <= floor_code(asked, codec))
    assert (asked <= stored) == (ceil_code(asked, codec) <= code)


def test_a_sample_of_clauses_alike_has_ends_of_every_dimension(monkeypatch):
    monkeypatch.setattr(block_layout, "SAMPLED_PREDICATES", 64)
    schema = Schema({name: Number(0, 1) for name in "abcd"})
    alike = [Clause(ranges=dict.fromkeys("abcd", (i / 128, 0.75))) for i in range(64)]
    ends = block_layout.sample_ends(encode_clauses(schema, Vocabularies(schema), alike, range(64)))
    assert all(len(values) == 32 for values in ends[:4])
