"""Records say what the table says: each message to the zones that it meets and to no other, in its order; old records are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tidings.boards.messages import record
from tidings.boards.messages.family import Family
from tidings.boards.messages.followers import Followers
from tidings.boards.messages.objects import FamilyObjects
from tidings.boards.messages.painter import FamilyPainter
from tidings.boards.messages.record import OLD, VERSION, joined, old_common, unpacked, whole, zoned
from tidings.boards.messages.table import boxes_of
from tidings.boards.paint.zones import Zones
from tidings.errors import EventError

SCHEMA = td.Schema({"price": td.Number(), "stars": td.Number()})
FAMILY = Family("price", "stars", 3)
SAMPLE = np.sort(np.random.default_rng(1).random((500, 2)), 1)
COMMON = {"sequence": 5, "snapshot": 4, "at": 9, "family": FAMILY.name}


def changes(draw, sequence):
    """One object, or many of which some go."""
    count = 1 if sequence % 2 else 8
    flats = [{"price": x, "stars": y} if y > 0.1 else None for x, y in draw.random((count, 2)).round(2).tolist()]
    return {f"f{draw.integers(40)}": flat for flat in flats}


def rows_of(said):
    """As the table has them."""
    found = []
    for i, (object, moved, place) in enumerate(zip(said.object, said.moved, said.place.tolist(), strict=True)):
        x, y, moved_x, moved_y = (None if value == np.inf else value for value in place)
        if moved is None:
            moved_x = moved_y = None
        for box in said.box[said.start[i] : said.start[i + 1]].tolist():
            found.append((*box, object, x, y, moved, moved_x, moved_y))
    return found


def rows_in(table):
    names = ("l_lo", "r_lo", "l_hi", "r_hi", "object", "x", "y", "moved", "moved_x", "moved_y")
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


@pytest.mark.parametrize("most", [8192, 3])
def test_a_message_goes_to_the_zones_it_meets(monkeypatch, most):
    monkeypatch.setattr(record, "RECTANGLES", most)
    draw, zones = np.random.default_rng(2), Zones.balanced(SAMPLE, 6)
    says, tells = FamilyPainter(SCHEMA, "flats", FAMILY), FamilyPainter(SCHEMA, "flats", FAMILY)
    for sequence in range(1, 40):
        change = changes(draw, sequence)
        said, table = says.say(change), tells.change(change, sequence, sequence - 1, 0)
        assert rows_of(said) == rows_in(table) == rows_of(unpacked(whole(said), VERSION))
        sent: dict[int, list] = {}
        for zone, body, headers in zoned(said, zones, COMMON):
            assert dict(headers).items() >= {name: str(value).encode() for name, value in COMMON.items()}.items()
            sent.setdefault(zone, []).append((unpacked(body, int(dict(headers)["version"])), int(dict(headers)["left"])))
        met = zones.meeting_all(boxes_of(table))
        assert set(sent) == set(np.flatnonzero(met.any(0)).tolist())
        for zone, parts in sent.items():
            expected = [row for row, meets in zip(rows_in(table), met[:, zone], strict=True) if meets]
            assert rows_of(joined([part for part, _ in parts])) == expected
            assert [left for _, left in parts] == list(reversed(range(len(parts))))
            assert all(len(part.box) <= most for part, _ in parts)


def test_nothing_said_is_a_record_too():
    painter = FamilyPainter(SCHEMA, "flats", FAMILY)
    said = unpacked(whole(painter.say({"f1": None})), VERSION)
    assert rows_of(said) == list(zoned(said, Zones.balanced(SAMPLE, 6), COMMON)) == []


def test_who_follows_a_table_and_who_hears_records_have_the_same_lists():
    draw, objects = np.random.default_rng(3), FamilyObjects()
    says, tells = FamilyPainter(SCHEMA, "flats", FAMILY), FamilyPainter(SCHEMA, "flats", FAMILY)
    hearing, following = Followers(FAMILY.k), Followers(FAMILY.k)
    for followers in (hearing, following):
        followers.begin([f"w{i}" for i in range(50)], SAMPLE[:50], [3] * 50, [True] * 50, objects, 0)
    for sequence in range(1, 40):
        change = changes(draw, sequence)
        bodies = zoned(says.say(change), Zones.balanced(SAMPLE, 1), COMMON)
        parts = [unpacked(body, VERSION) for _, body, _ in bodies]
        table = tells.change(change, sequence, sequence - 1, 0)
        heard = hearing.hear(joined(parts), sequence) if parts else []
        assert heard == following.follow(table, sequence)
    assert {w: hearing.top(w) for w in hearing.row} == {w: following.top(w) for w in following.row}


def test_records_of_version_1_are_read_and_unknown_ones_refused():
    painter, other = FamilyPainter(SCHEMA, "flats", FAMILY), FamilyPainter(SCHEMA, "flats", FAMILY)
    flats = {"a": {"price": 1.0, "stars": 2.0}, "b": {"price": 2.0, "stars": 3.0}}
    [batch] = painter.change(flats, 7, 6, 1_000_000).combine_chunks().to_batches()
    body = bytes(batch.serialize())
    assert rows_of(unpacked(body, OLD)) == rows_of(other.say(flats)) == rows_in(pa.Table.from_batches([batch]))
    assert old_common(body) == (1_000_000, FAMILY.name)
    with pytest.raises(EventError, match="version 3: versions 1 and 2 are accepted"):
        unpacked(body, 3)
