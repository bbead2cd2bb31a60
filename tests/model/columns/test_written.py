"""Rows of columns as the table that tidings writes: the same as by objects."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tidings as td
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.tables import batch_of, events_from_arrow, events_to_arrow
from tidings.model.columns.written import Writer
from tidings.model.door.event import read_event

SCHEMA = td.Schema(
    {
        "price": td.Number(),
        "brand": td.Category(),
        "sold": td.Bool(),
        "made": td.Time(),
        "due": td.Date(),
        "place": td.Place(plane=True),
        "about": td.Words(),
    }
)
VALUES = {
    "price": [1.0, -2.5],
    "brand": ["x", "y", "ü"],
    "sold": [True, False],
    "made": ["2026-01-31T00:00:00Z", 5.5],
    "due": ["2026-01-31"],
    "place": [(1.0, 2.0), (0.0, 0.0, 3.0, 4.0)],
    "about": ["red green", "blue", ""],
}


@pytest.mark.parametrize("names", [list(SCHEMA), ["price", "brand", "place"], []])
@pytest.mark.parametrize("seed", range(4))
def test_some_rows_are_written_as_objects_are(seed, names):
    draw = random.Random(seed)
    parts, expected = [], []
    for part in range(draw.choice([1, 3])):
        events = [
            read_event(
                SCHEMA,
                {"id": f"e{draw.random()}", "expires": draw.choice([None, 7.0])}
                | {name: draw.choice([None, *VALUES[name]]) for name in names if part or name != "about"},
            )
            for _ in range(30)
        ]
        table = batch_of(SCHEMA, Vocabularies(SCHEMA), events).table
        kept = [name for name in table.column_names if name not in SCHEMA or name in names]
        batch = events_from_arrow(SCHEMA, Vocabularies(SCHEMA), table.select(kept))
        rows = np.array(sorted(draw.sample(range(30), 11)), np.int64)
        assert batch.read is not None
        parts.append((batch.read, rows))
        expected += [events[row] for row in rows.tolist()]
    found = Writer(SCHEMA)(parts)
    found.validate(full=True)
    assert found.equals(events_to_arrow(SCHEMA, sorted(expected, key=lambda event: event.id)))
