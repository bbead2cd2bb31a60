"""Place blocks where they are many: more pairs than are looked at together, batches taken by cells and one by one, and both alike.

The judge is a scan of all boxes and ranges in NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest

from tidings.index.blocks import places
from tidings.index.blocks.places import PlaceBlocks
from tidings.model.columns.arrays import ClauseColumns, EventColumns

SIZE = 600


def clauses_of(box: np.ndarray, low: np.ndarray, high: np.ndarray) -> ClauseColumns:
    """A box and a range on dimension 1 each."""
    n = len(box)
    return ClauseColumns(
        owner=np.arange(n, dtype=np.int32),
        pred_start=np.arange(n + 1),
        pred_dim=np.ones(n, np.int16),
        pred_kind=np.zeros(n, np.uint8),
        pred_lo=low,
        pred_hi=high,
        pool=np.empty(0, np.int32),
        box=box,
        word_start=np.zeros(n + 1, np.int64),
        word=np.empty(0, np.int32),
        residue=np.zeros(n, np.bool_),
    )


def events_of(box: np.ndarray, value: np.ndarray) -> EventColumns:
    values = np.column_stack([np.full(len(box), np.nan), value])
    return EventColumns(value=values, box=box, word_start=np.zeros(len(box) + 1, np.int64), word=np.empty(0, np.int32))


def scanned(clauses: ClauseColumns, events: EventColumns) -> list[tuple[int, int]]:
    found = []
    for event, (west, south, east, north) in enumerate(events.box.tolist()):
        box, value = clauses.box, events.value[event, 1]
        hit = (box[:, 0] <= east) & (box[:, 1] <= north) & (box[:, 2] >= west) & (box[:, 3] >= south)
        hit &= (clauses.pred_lo <= value) & (value <= clauses.pred_hi)
        found += [(event, clause) for clause in np.flatnonzero(hit).tolist()]
    return found


def judge(home: PlaceBlocks, clauses: ClauseColumns, events: EventColumns) -> None:
    home.check()
    event, clause = home.match_batch(events)
    assert sorted(zip(event.tolist(), clause.tolist(), strict=True)) == scanned(clauses, events)


@pytest.mark.parametrize("each", [0.0, 1e9])
def test_more_pairs_than_are_looked_at_together(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    """Every event touches every block, and few clauses hold."""
    monkeypatch.setattr(places, "ROOM", 40)
    monkeypatch.setattr(places, "EACH", each)
    rng = np.random.default_rng(1)
    middle = np.round(rng.random(SIZE) * 8, 3)
    clauses = clauses_of(np.hstack([rng.random((SIZE, 2)), 2 + rng.random((SIZE, 2))]), middle, middle + 1 / 512)
    corner = 1 + rng.random((60, 2))
    judge(PlaceBlocks.build(clauses), clauses, events_of(np.hstack([corner, corner]), np.round(rng.random(60) * 8, 3)))


@pytest.mark.parametrize("each", [0.0, 1e9])
def test_by_cells_and_one_by_one(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    """Points, boxes and events without a place; boxes of very different sizes, and some far away."""
    monkeypatch.setattr(places, "EACH", each)
    rng = np.random.default_rng(2)
    corner = np.round(rng.random((SIZE, 2)) * 16, 1)
    corner[:40] *= 1e6
    size = np.round(10.0 ** rng.uniform(-2, 1, (SIZE, 2)), 2)
    low = np.round(rng.random(SIZE), 1)
    clauses = clauses_of(np.hstack([corner, corner + size]), low, low + 0.3)
    place = np.round(rng.random((60, 2)) * 16, 1)
    place[:8] = corner[:8]
    box = np.hstack([place, place + np.where(rng.random((60, 2)) < 0.3, 0.5, 0.0)])
    box[::11] = (np.inf, np.inf, -np.inf, -np.inf)
    judge(PlaceBlocks.build(clauses), clauses, events_of(box, np.round(rng.random(60), 1)))
