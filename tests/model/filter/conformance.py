"""OGC's abstract test suite of CQL2 with its data set, as subscriptions and events: `tests/data/cql2/NOTICE` says where it is from.

Every predicate is a subscription in both encodings, and so is its negation; so are the suite's combinations of four with their
counts (`/conf/basic-cql2/logical`), and, as the other classes ask, ten combinations of four of each class, drawn with a fixed seed.
Of the latter the suite asks only that they can be evaluated; here the answer must be what three-valued logic makes of the four.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import cql2
import pyarrow as pa
import pyarrow.parquet as pq

import tidings as td

HERE = Path(__file__).parents[2] / "data" / "cql2"
CITIES, COUNTRIES, RIVERS = "ne_110m_populated_places_simple", "ne_110m_admin_0_countries", "ne_110m_rivers_lake_centerlines"
TABLES = (CITIES, COUNTRIES, RIVERS)
CORRECTED = {
    "ACCENTI(name) LIKE accenti('Ch%')": 3,
    "ACCENTI(CASEI(name)) LIKE accenti(casei('Chiș%'))": 1,
    "ACCENTI(CASEI(name)) LIKE accenti(casei('cHis%'))": 1,
}
"""The suite says 2 for each, and its data has these: opengeospatial/ogcapi-features, issue 1011."""
COUNTED = "(NOT ({1}) AND {0}) OR ({2} AND {3}) OR NOT ({0} OR {3})"
DRAWN = "((NOT {0} AND {1}) OR ({2} AND NOT {3}) OR NOT ({0} AND {3}))"
DRAWS = 10
_TYPES = {pa.string(): td.Category, pa.float64(): td.Number, pa.bool_(): td.Bool, pa.date32(): td.Date, pa.binary(): td.Place}


@cache
def suite() -> dict[str, list[dict[str, Any]]]:
    read: dict[str, list[dict[str, Any]]] = json.loads((HERE / "suite.json").read_text())
    return read


def predicates(table: str) -> list[dict[str, Any]]:
    return [row for row in suite()["predicates"] if row["table"] == table]


@cache
def events(table: str) -> pa.Table:
    return pq.read_table(HERE / f"{table}.parquet")


def schema(table: str) -> td.Schema:
    kinds = {field.name: _TYPES.get(field.type, td.Time) for field in events(table).schema if field.name != "id"}
    return td.Schema({name: td.Place(shapes=True) if kind is td.Place else kind() for name, kind in kinds.items()})


@cache
def drawn(table: str) -> list[tuple[str, ...]]:
    """Combinations of four predicates of one class."""
    by_class = defaultdict(list)
    for row in predicates(table):
        by_class[row["class"]].append(row["predicate"])
    chance = random.Random(21065)
    return [tuple(chance.choices(known, k=4)) for known in by_class.values() for _ in range(DRAWS)]


def combined(expression: str, four: Any) -> str:
    return expression.format(*(f"({predicate})" for predicate in four))


@cache
def filters(table: str) -> dict[str, str]:
    """By id: `text`, `json` and `not` of every predicate, `counted` and `drawn` of combinations."""
    made: dict[str, str] = {}
    for number, row in enumerate(predicates(table)):
        made[f"text {number}"] = row["predicate"]
        made[f"json {number}"] = json.dumps(cql2.parse_text(row["predicate"]).to_json())
        made[f"not {number}"] = f"NOT ({row['predicate']})"
    for number, row in enumerate(suite()["combinations"] if table == CITIES else ()):
        made[f"counted {number}"] = combined(COUNTED, row["predicates"])
    return made | {f"drawn {number}": combined(DRAWN, four) for number, four in enumerate(drawn(table))}


def fill(topic: td.Topic, table: str) -> None:
    topic.subscribe_many(pa.table({"id": [*filters(table)], "filter": [*filters(table).values()]}))


def judge(table: str, matches: pa.Table) -> None:
    """`matches` has (event, subscription) of all events and all filters."""
    found: dict[str, set[str]] = {id: set() for id in filters(table)}
    for event, subscription in zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True):
        found[subscription].add(event)
    rows = predicates(table)
    expected = {n: CORRECTED.get(row["predicate"], row["expected"]) for n, row in enumerate(rows)}
    for encoding in ("text", "json"):
        assert {n: len(found[f"{encoding} {n}"]) for n in expected} == expected, encoding
    counted = suite()["combinations"] if table == CITIES else []
    assert [len(found[f"counted {n}"]) for n in range(len(counted))] == [row["expected"] for row in counted]
    number = {row["predicate"]: n for n, row in enumerate(rows)}
    for n, four in enumerate(drawn(table)):
        for event in events(table)["id"].to_pylist():
            a, b, c, d = (_verdict(found, number[predicate], event) for predicate in four)
            verdict = _or(_or(_and(_not(a), b), _and(c, _not(d))), _not(_and(a, d)))
            assert (event in found[f"drawn {n}"]) is (verdict is True), (four, event)


Truth = bool | None


def _verdict(found: dict[str, set[str]], number: int, event: str) -> Truth:
    """None where neither the predicate nor its negation holds."""
    return True if event in found[f"text {number}"] else False if event in found[f"not {number}"] else None


def _not(a: Truth) -> Truth:
    return None if a is None else not a


def _and(a: Truth, b: Truth) -> Truth:
    return False if a is False or b is False else None if a is None or b is None else True


def _or(a: Truth, b: Truth) -> Truth:
    return _not(_and(_not(a), _not(b)))
