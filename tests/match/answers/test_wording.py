"""What an explanation says of a range."""

from __future__ import annotations

from typing import Any

import pytest

import tidings as td

SCHEMA = {"price": td.Number(), "made": td.Time(), "about": td.Words()}


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("price < 500", "price is 1000, wanted below 500"),
        ("price <= 500", "price is 1000, wanted at most 500"),
        ("price > 2000", "price is 1000, wanted above 2000"),
        ("price >= 2000.5", "price is 1000, wanted at least 2000.5"),
        ("price = 7", "price is 1000, wanted 7"),
        ("price BETWEEN 1 AND 2", "price is 1000, wanted from 1 to 2"),
        ("price >= 0.1 AND price < 0.3", "price is 1000, wanted from 0.1 and below 0.3"),
        ("price < 499.99999999999994", "price is 1000, wanted at most 499.9999999999999"),
        ("made < TIMESTAMP('2026-01-01T00:00:00Z')", "made is 2026-06-01T00:00:00+00:00, wanted below 2026-01-01T00:00:00+00:00"),
        ("A_CONTAINS(about, ('x'))", "about is ['a', 'b'], wanted all of x"),
    ],
)
def test_a_reason_reads_as_the_filter_was_written(filter: str, said: str) -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("s", filter)
    assert topic.explain({"id": "e", "price": 1000, "made": "2026-06-01", "about": "b a"}, "s").reason == said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"k": 2, "window": "1 day"}, "its best 2, of the last 1 d"),
        (
            {"k": 2, "window": "day", "tz": "Europe/Berlin", "per": "price"},
            "its best 2, of the day in Europe/Berlin, one per price",
        ),
        ({"budget": "3 per week", "cooldown": "1 hour"}, "at most 3 per week, nothing for 1 h after one"),
        ({"k": 5, "digest": "at 8:00"}, "the best 5 together, at 08:00 in UTC"),
        ({}, ""),
    ],
)
def test_an_explanation_says_what_decides_beside_the_filter(fields: dict[str, Any], said: str) -> None:
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("s", "price > 3", **fields)
    assert topic.explain({"id": "e", "price": 5}, "s").hears == said


def test_an_explanation_goes_through_the_nearest_clause_part_by_part() -> None:
    topic = td.Topic("t", {**SCHEMA, "place": td.Place(), "brand": td.Category()})
    near = "price < 500 AND brand = 'Alba' AND S_INTERSECTS(place, BBOX(0, 0, 1, 1)) AND A_CONTAINS(about, ('a'))"
    topic.subscribe("s", f"(price < 500 AND brand = 'Cima' AND A_CONTAINS(about, ('x'))) OR ({near})")
    event = {"id": "e", "price": 1000, "brand": "Alba", "place": (1, 1), "about": "b a"}
    told = topic.explain(event, "s")
    assert not told.matched
    assert told.failed == ("price is 1000, wanted below 500",)
    assert told.held == ("brand is Alba, wanted one of Alba", "place (1, 1) touches its box", "about has a")
    told = topic.explain({**event, "price": 5}, "s")
    assert told.matched
    assert told.failed == ()
    assert told.held[0] == "price is 5, wanted below 500"
    assert topic.explain({"id": "e"}, "s").failed[0] == "price is missing"
