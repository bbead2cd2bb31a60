"""Random filters and events for judging the compiler: values on a coarse grid, so that ties and edges come up often."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from tidings import Category, Number, Place, Schema, Time, Words
from tidings.model.values.times import parse_time

SCHEMA = Schema(
    {"price": Number(0, 4), "stars": Number(), "brand": Category(), "made": Time(), "place": Place(), "about": Words("as-is")}
)
BRANDS = ("Acme", "acme", "Abba", "Beta", "beta%", "_x", "éclair", "zürich", "")
PATTERNS = ("A%", "%a", "%e%a%", "_c%", "Acme", "____", "%", r"beta\%", r"\_x", "z_rich", "")
WORDS = ("red", "blue", "new", "old", "p30")
ONE_WAY_RELATIONS = (
    *("BEFORE", "AFTER", "MEETS", "METBY", "OVERLAPS", "OVERLAPPEDBY"),
    *("STARTS", "STARTEDBY", "DURING", "CONTAINS", "FINISHES", "FINISHEDBY"),
)
PLACE_RELATIONS = (
    "INTERSECTS",
    "INTERSECTS",
    "INTERSECTS",
    "WITHIN",
    "CONTAINS",
    "DISJOINT",
    "EQUALS",
    "TOUCHES",
    "OVERLAPS",
    "CROSSES",
)
START = datetime(2026, 1, 1, tzinfo=UTC)
Item = dict[str, Any]


def eighth(r: random.Random) -> float:
    return r.randrange(-8, 33) / 8


def moment(r: random.Random) -> str:
    return (START + timedelta(hours=r.randrange(0, 24 * 4, 3), microseconds=r.choice((0, 0, 1, 999_999)))).isoformat()


def random_event(r: random.Random) -> tuple[Item, Item]:
    """One event twice: in tidings' inner forms, and as the JSON item that cql2 reads."""
    values: Item = {}
    item: Item = {}
    for name in ("price", "stars"):
        values[name] = item[name] = eighth(r)
    values["brand"] = item["brand"] = r.choice(BRANDS)
    item["made"] = moment(r)
    values["made"] = parse_time(item["made"])
    values["place"] = box = random_box(r, r.random() < 0.7)
    item["place"] = as_geojson(box)
    item["about"] = r.sample(WORDS, r.randrange(0, 4))
    values["about"] = frozenset(item["about"])
    for name in r.sample(list(SCHEMA), r.choice((0, 0, 0, 1, 2))):
        del values[name]
        item.pop(name) if r.random() < 0.5 else item.__setitem__(name, None)
    return values, item


def random_box(r: random.Random, point: bool) -> tuple[float, float, float, float]:
    x, y = r.randrange(-16, 17) / 8, r.randrange(-16, 17) / 8
    if point:
        return x, y, x, y
    return x, y, x + r.randrange(1, 9) / 8, y + r.randrange(1, 9) / 8


def as_geojson(box: tuple[float, float, float, float]) -> Item:
    xmin, ymin, xmax, ymax = box
    if xmin == xmax:
        return {"type": "Point", "coordinates": [xmin, ymin]}
    return {"type": "Polygon", "coordinates": [[[xmin, ymin], [xmax, ymin], [xmax, ymax], [xmin, ymax], [xmin, ymin]]]}


def random_filter(r: random.Random, depth: int = 3) -> str:
    if depth and r.random() < 0.65:
        parts = [random_filter(r, depth - 1) for _ in range(r.choice((1, 2, 2, 3)))]
        joined = f" {r.choice(('AND', 'OR'))} ".join(f"({part})" for part in parts)
        return f"NOT ({joined})" if r.random() < 0.3 else joined
    return r.choice(_LEAVES)(r)


def _operator(r: random.Random) -> str:
    return r.choice(("=", "<>", "<", "<=", ">", ">="))


def _maybe_not(r: random.Random) -> str:
    return r.choice(("", "", "NOT "))


def _number(r: random.Random) -> str:
    sides = [r.choice(("price", "stars")), r.choice((str(eighth(r)), f"({abs(eighth(r))} + {abs(eighth(r))} * 2)"))]
    r.shuffle(sides)
    return f"{sides[0]} {_operator(r)} {sides[1]}"


def _number_set(r: random.Random) -> str:
    name = r.choice(("price", "stars"))
    if r.random() < 0.5:
        return f"{name} {_maybe_not(r)}BETWEEN {eighth(r)} AND {eighth(r)}"
    return f"{name} {_maybe_not(r)}IN ({', '.join(str(eighth(r)) for _ in range(r.randrange(1, 5)))})"


def _arithmetic(r: random.Random) -> str:
    left = r.choice(
        ("price + stars", "price * 2 - stars", "-price", "price % 1.5", "stars div 2", "(price - 1) ^ 2", "stars / 4", "price")
    )
    return f"{left} {_operator(r)} {r.choice((str(eighth(r)), 'stars', 'price * 0.5'))}"


def _null(r: random.Random) -> str:
    return f"{r.choice(list(SCHEMA))} IS {_maybe_not(r)}NULL"


def _brand(r: random.Random) -> str:
    if r.random() < 0.5:
        return f"brand {_operator(r)} '{r.choice(BRANDS)}'"
    if r.random() < 0.5:
        return f"brand {_maybe_not(r)}IN ({', '.join(repr(b) for b in r.sample(BRANDS, 3))})"
    return f"brand {_maybe_not(r)}LIKE '{r.choice(PATTERNS)}'"


def _made(r: random.Random) -> str:
    return f"made {_operator(r)} TIMESTAMP('{moment(r)}')"


def _made_relation(r: random.Random) -> str:
    first, last = sorted((moment(r), moment(r)))
    ends = (r.choice((first, first, "..")), r.choice((last, last, "..")))
    span = r.choice((f"INTERVAL('{ends[0]}', '{ends[1]}')", f"TIMESTAMP('{first}')"))
    sides = ["made", span]
    r.shuffle(sides)
    name = r.choice(ONE_WAY_RELATIONS)
    name = r.choice((name, name, "EQUALS", "DISJOINT", "INTERSECTS"))
    return f"T_{name}({sides[0]}, {sides[1]})"


def _made_day(r: random.Random) -> str:
    name = r.choice(("BEFORE", "AFTER", "DURING", "DISJOINT", "INTERSECTS"))
    return f"T_{name}(made, DATE('2026-01-0{r.randrange(1, 5)}'))"


def _place(r: random.Random) -> str:
    x1, y1, x2, y2 = random_box(r, False)
    shape = r.choice(
        (
            f"BBOX({x1}, {y1}, {x2}, {y2})",
            f"BBOX({x1}, {y1}, {x2}, {y2})",
            f"POINT({x1} {y1})",
            f"POLYGON(({x1} {y1}, {x2} {y1}, {x2} {y2}, {x1} {y2}, {x1} {y1}))",
            f"POLYGON(({x1} {y1}, {x2} {y1}, {x2} {y2}, {x1} {y1}))",
            f"LINESTRING({x1} {y1}, {x2} {y2})",
        )
    )
    sides = ["place", shape]
    r.shuffle(sides)
    name = r.choice(PLACE_RELATIONS)
    return f"S_{name}({sides[0]}, {sides[1]})"


def _about(r: random.Random) -> str:
    sides = ["about", "(" + ", ".join(f"'{w}'" for w in r.sample(WORDS, r.randrange(1, 4))) + ")"]
    r.shuffle(sides)
    return f"A_{r.choice(('CONTAINS', 'CONTAINS', 'OVERLAPS', 'EQUALS', 'CONTAINEDBY'))}({sides[0]}, {sides[1]})"


def _constant(r: random.Random) -> str:
    return r.choice(("TRUE", "FALSE", "1 = 1", "'a' > 'b'"))


_LEAVES = (
    *[_number, _number, _number, _number, _number_set, _number_set, _arithmetic, _null, _brand, _brand],
    *[_made, _made_relation, _made_day, _place, _place, _about, _about, _constant],
)
