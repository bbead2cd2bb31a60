"""Fills the tables of `filters.md`, between its markers, from what the compiler answers."""

from __future__ import annotations

import json
import math
import re
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import cql2

from experiments.report import markdown
from tidings import Category, Number, Place, Schema, Time, Words
from tidings.errors import FilterError, NeverMatchesWarning
from tidings.model.door.event import read_event
from tidings.model.filter.clause import Clause
from tidings.model.filter.compile import compile_filter
from tidings.model.values.times import EPOCH

PAGE = Path(__file__).parent / "filters.md"
EXAMPLES = Path(__file__).parent.parent / "tests" / "data" / "cql2" / "examples.json"
DEALS = Schema(
    {"price": Number(0, 10_000), "stars": Number(), "brand": Category(), "place": Place(), "about": Words(), "made": Time()}
)

SHOWCASE = (
    "price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30'))",
    "price < 500",
    "price BETWEEN 100 AND 2 * 100",
    "brand IN ('Huawei', 'Nokia')",
    "brand = 'Huawei' OR brand = 'Nokia'",
    "NOT (price > 500 OR brand = 'Nokia')",
    "stars IS NULL",
    "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))",
    "S_INTERSECTS(place, BBOX(170, -20, -170, -10))",
    "S_INTERSECTS(place, POLYGON((0 0, 2 0, 1 2, 0 0)))",
    "S_WITHIN(place, BBOX(0, 0, 1, 1))",
    "S_DWITHIN(place, POINT(1 2), 500, 'm')",
    "A_OVERLAPS(about, ('P30', 'Mate 20'))",
    "A_EQUALS(about, ('p30'))",
    "made >= TIMESTAMP('2026-01-01T00:00:00Z')",
    "made = DATE('2026-01-01')",
    "T_DURING(made, INTERVAL('2026-01-01', '..'))",
    "brand LIKE 'Hua%'",
    "CASEI(brand) = CASEI('HUAWEI')",
    "price / stars < 100",
    "price <= 0.9 * PREV(price) AND price < 500",
    "price <> 500",
    "price > 5 AND price < 3",
    "price = 'cheap'",
    "brand = 3",
    "about = 'p30'",
    "colour = 'red'",
    "price = NULL",
    "S_FAR(place, POINT(1 2))",
)

NOON = "2026-01-02T12:00:00Z"
DEVIATIONS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("price IN (0)", {"price": -0.0}, "cql2 compares the printed forms `0` and `-0`; as numbers they are equal."),
    ("made < DATE('2026-01-03')", {"made": NOON}, "cql2 lets the instant last a day of its own before comparing."),
    ("made = DATE('2026-01-02')", {"made": NOON}, "The same: a DATE is an instant known to the day, and noon is on that day."),
    ("T_EQUALS(made, DATE('2026-01-02'))", {"made": NOON}, "cql2 takes the DATE for an interval, which no instant equals."),
    (
        "made BETWEEN TIMESTAMP('2026-01-01T00:00:00Z') AND TIMESTAMP('2026-01-03T00:00:00Z')",
        {"made": NOON},
        "cql2 compares a string with a timestamp by their kinds, not their values.",
    ),
    ("made IN (TIMESTAMP('2026-01-02T12:00:00Z'))", {"made": NOON}, "The same, by printed form."),
    (
        "made = '2026-01-02T13:00:00+01:00'",
        {"made": NOON},
        "cql2 compares two strings; one is a Time here, and both name one instant.",
    ),
    (
        "T_INTERSECTS(made, INTERVAL('2026-01-01', '2026-01-02'))",
        {"made": NOON},
        "cql2 ends the interval at the first instant of its last day; a date names the whole day.",
    ),
    (
        "CASEI(brand) = CASEI('STRASSE')",
        {"brand": "straße"},
        "cql2 lowers case; the standard folds it, and its own example is Straße.",
    ),
    ("price / stars > 3", {"price": 1, "stars": 0}, "cql2 calculates with infinity; without a finite answer nothing holds here."),
    ("NOT (price / stars = 1)", {"price": 0, "stars": 0}, "The same with NaN: nor does the negation hold."),
    (
        "S_INTERSECTS(place, BBOX(170, -10, -170, 10))",
        {"place": {"type": "Point", "coordinates": [175.0, 0.0]}},
        "cql2 swaps the longitudes; the standard has the box cross the 180th meridian.",
    ),
    ("A_CONTAINS(about, ('P30'))", {"about": ["p30"]}, "Words are tokens here: filters pass through the events' tokenizer."),
    ("price IN (1 + 1, 3)", {"price": 2}, "cql2 does not calculate inside a list."),
)

_NAMED = {
    Number: "windSpeed balance depth category vehicle_height bridge_clearance eo_cloud_cover landsat_wrs_row landsat_wrs_path"
    " floors taxes value foo bar x",
    Category: "city name cityName road_class etat_vol landsat_scene_id eo_instrument beamMode swathDirection polarization owner_"
    " swimming_pool material geophys_SURVEY_NAME id_",
    Time: "updated event_time touchdown liftOff built starts_at ends_at updated_at",
    Place: "geometry road footprint location",
    Words: "layer_ids values",
}
EXAMPLE_SCHEMA = {name: kind() for kind, names in _NAMED.items() for name in names.split()}
_TEXTUAL = {"example03": "landsat_wrs_path", "example40": "value", "example40-alt01": "value"}
_RESERVED = {"id": "id_", "owner": "owner_"}


def main() -> None:
    PAGE.write_text(generated())


def generated() -> str:
    """The page with every table made anew."""
    page = PAGE.read_text()
    for name, table in (("showcase", showcase()), ("deviations", deviations()), ("examples", examples())):
        begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{table}\n\n{end}{rest.split(end)[1]}"
    return page


def showcase() -> str:
    return _table(("filter", "becomes"), [(f"`{text}`", _outcome(DEALS, text)) for text in SHOWCASE])


def deviations() -> str:
    rows = []
    for text, item, reason in DEVIATIONS:
        ours, theirs = judged(text, item)
        rows.append((f"`{text}`", f"`{json.dumps(item, ensure_ascii=False)}`", _yes(theirs), _yes(ours), reason))
    return _table(("filter", "event", "cql2", "tidings", "why"), rows)


def judged(text: str, item: dict[str, Any]) -> tuple[bool, bool]:
    """(tidings' answer, cql2's own)."""
    values = read_event(DEALS, {"id": "e", **item}).values
    ours = any(clause.holds(DEALS, values) for clause in compile_filter(DEALS, text))
    try:
        theirs = bool(cql2.Expr(text).matches(item))
    except Exception:  # noqa: BLE001 - cql2 raises plain Exception on what it cannot reduce
        theirs = False
    return ours, theirs


def examples() -> str:
    return _table(("example", "filter", "becomes"), example_rows())


def example_rows() -> list[tuple[str, str, str]]:
    rows = []
    for name, example in json.loads(EXAMPLES.read_text()).items():
        tree = renamed(cql2.parse_text(example["text"]).to_json())
        rows.append((name, f"`{_short(example['text'])}`", _outcome(example_schema(name, tree), tree)))
    return rows


def example_schema(name: str, tree: Any) -> Schema:
    """The attributes an example names, with types that fit: the standard gives a few names now numbers, now strings."""
    used = re.findall(r'"property": "([^"]+)"', json.dumps(tree))
    return Schema({n: Category() if _TEXTUAL.get(name) == n else EXAMPLE_SCHEMA[n] for n in used})


def renamed(tree: Any) -> Any:
    """The tree with property names that a schema can have."""
    if isinstance(tree, list):
        return [renamed(child) for child in tree]
    if not isinstance(tree, dict):
        return tree
    if "property" in tree:
        name = tree["property"].replace(":", "_")
        return {"property": _RESERVED.get(name, name)}
    return {key: renamed(value) for key, value in tree.items()}


def _outcome(schema: Schema, source: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NeverMatchesWarning)
        try:
            clauses = compile_filter(schema, source)
        except FilterError as error:
            return f"refused: {error}"
    if caught:
        return "accepted with a warning: it can never match"
    return "; or ".join(described(schema, clause) for clause in clauses) if len(clauses) <= 4 else f"{len(clauses)} clauses"


def described(schema: Schema, clause: Clause) -> str:
    parts = [f"{name} in [{_end(schema, name, lo)}, {_end(schema, name, hi)}]" for name, (lo, hi) in clause.ranges.items()]
    parts += [f"{name} one of {', '.join(map(repr, sorted(values)))}" for name, values in clause.within.items()]
    parts += [f"{name} none of {', '.join(map(repr, sorted(values)))}" for name, values in clause.without.items()]
    parts += [f"{name} missing" for name in sorted(clause.nulls)] + [f"{name} present" for name in sorted(clause.present)]
    if clause.box is not None:
        parts.append(f"box {clause.box}")
    if clause.words:
        parts.append(f"words {', '.join(sorted(clause.words))}")
    parts += [f"residue `{_operator(json.loads(residue.source))}`" for residue in clause.residue]
    return ", ".join(parts) or "everything"


def _end(schema: Schema, name: str, value: float) -> str:
    if isinstance(schema[name], Time) and math.isfinite(value):
        return (EPOCH + timedelta(microseconds=value)).isoformat().replace("+00:00", "Z")
    return str(value)


def _operator(tree: dict[str, Any]) -> str:
    return f"not {_operator(tree['args'][0])}" if tree["op"] == "not" else str(tree["op"])


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return markdown([dict(zip(header, row, strict=True)) for row in rows])


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 90 else flat[:87] + "..."


def _yes(answer: bool) -> str:
    return "matches" if answer else "no"


if __name__ == "__main__":
    main()
