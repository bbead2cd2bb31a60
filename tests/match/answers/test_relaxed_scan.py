"""The scan of relaxed matching gives what scoring everybody gives, ties and hidden ones included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tests.oracle.topic import TopicOracle
from tidings.match.answers import relaxed

SCHEMA = td.Schema({name: td.Number() for name in "abcd"})


@pytest.mark.parametrize("seed", range(4))
def test_a_scan_gives_the_lists_of_the_oracle(seed, monkeypatch):
    monkeypatch.setattr(relaxed, "SCANNED", 0.0)
    rng = np.random.default_rng(seed)
    n = 700
    columns: dict[str, object] = {"id": [f"s{i:03}" for i in range(n)]}
    for name in "abcd":
        low = rng.integers(0, 40, n) / 8 if seed % 2 else rng.normal(0, 1, n)
        there = rng.random(n) < 0.7
        columns[f"{name}.lo"] = pa.array(low, mask=~there)
        columns[f"{name}.hi"] = pa.array(low + rng.integers(0, 9, n) / 8, mask=~there)
        columns[f"{name}.weight"] = rng.integers(0, 4, n) / 3
    table = pa.table(columns)
    topic, oracle = td.Topic("t", SCHEMA), TopicOracle(SCHEMA)
    topic.subscribe_many(table)
    for row in table.to_pylist():
        asks = [
            f"{name} BETWEEN {row[f'{name}.lo']!r} AND {row[f'{name}.hi']!r}" for name in "abcd" if row[f"{name}.lo"] is not None
        ]
        weights = {name: row[f"{name}.weight"] for name in "abcd"}
        oracle.subscribe(row["id"], " AND ".join(asks) or None, weights=weights)
    for id in ("s003", "s100"):
        topic.unsubscribe(id)
        oracle.unsubscribe(id)
    for _ in range(12):
        point = (rng.integers(0, 40, 4) / 8 if seed % 2 else rng.normal(0, 1, 4)).tolist()
        event = {"id": "e"} | {name: value for name, value in zip("abcd", point, strict=True) if rng.random() < 0.9}
        for k in (0, 1, 10, 1000):
            assert topic.match(event, k, relaxed=True) == oracle.match_relaxed(event, k, "sum")
    side = topic.store.packed_reader().snapshot.segments[0].aside(relaxed.RelaxedSegment)
    assert side.scans(10)
    assert "scan bounds 3 us" in side.explained(10)
