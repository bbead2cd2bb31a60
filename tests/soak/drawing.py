"""Inputs to be refused or taken, drawn by the million: half are what a user could mean, with extreme values; the rest is spoilt.

`Drawer(seed)` gives one input a call, in tens of microseconds; Hypothesis, which draws the fuzz of `tests/model` and shrinks what
it finds, takes milliseconds. The schema has an attribute of every type.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import tidings as td

SCHEMA = td.Schema(
    {
        "price": td.Number(),
        "size": td.Number(-8, 8),
        "brand": td.Category(),
        "made": td.Time(),
        "day": td.Date(),
        "sold": td.Bool(),
        "place": td.Place(),
        "area": td.Place(plane=True, shapes=True),
        "about": td.Words(),
    }
)
NUMBERS = (0, 1, -1, 0.125, 5, 7.5, 1e308, -1e308, 5e-324, -0.0, 2**53, 2**63, 1e200)
WRONG_NUMBERS = (math.nan, math.inf, -math.inf, 10**400, -(10**4000), Decimal("1e999"), Decimal("NaN"), True, "5", b"5", None)
STRINGS = ("a", "b", "red", "é", "🦊", "a b", "'", "''", "%", "_", "\\", "ſ", "", "A", "2026-01-31", "points")
WRONG_STRINGS = ("\ud800", "\0", "a\x1fb", "\x7f", "x" * 3000, "\u202e", "\n")
TIMES = ("2026-01-31T10:00:00Z", "2026-01-31t10:00:00z", 0, 5, 10.5, "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59")
WRONG_TIMES = (1e308, "garbage", "2026-13-01T00:00:00Z", "2026-01-31T10:00:00+10:60", math.nan, -(10**30), [], "2026-02-30")
OTHERS = (object, {1, 2}, np.array([1.0, 2.0]), np.float32(1.5), np.int64(7), np.bool_(True), b"\x01\x00", 1j, range(3), print)
NAMES = (
    "id",
    "time",
    "expires",
    "type",
    "geometry",
    "properties",
    "coordinates",
    "specversion",
    "data",
    "deleted",
    "sku",
    "data_base64",
)
WINDOWS = ("2 s", "1 day", "3 events", "1000000 events", "90 s", 5, "1.5 hours")
WRONG_WINDOWS = ("", "0 s", "-1 day", "day", "1 parsec", 1e308, "9" * 400 + " s", [], "1 events of", "0 events")
BYS = ("price", "-price", "2 * size - price", "price / size", "price * 1e308 * 1e308", "size % 0", "-(-(-price))")
WRONG_BYS = ("", "brand", "price +", "(" * 3000, "price ** 9999", "nothing", "price < 5", "[" * 2000, '{"near": ', '{"near": {}}')
TYPES = (
    *(pa.string(), pa.large_string(), pa.float64(), pa.float16(), pa.int64(), pa.uint64(), pa.bool_(), pa.date32(), pa.null()),
    *(pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.list_(pa.string()), pa.list_(pa.float64()), pa.list_(pa.float64(), 4)),
    *(pa.binary(), pa.duration("s"), pa.decimal128(9, 2), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.list_(pa.int8()))),
    *(pa.struct([("x", pa.float64()), ("y", pa.float64())]), pa.struct([("x", pa.string())]), pa.map_(pa.string(), pa.int8())),
)


class Drawer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        words = ("A_CONTAINS", "A_OVERLAPS", "A_EQUALS", "A_CONTAINEDBY")
        self.leaves: tuple[Callable[[], str], ...] = (
            lambda: f"{self.choice('price', 'size')} {self.operator()} {self.number()!r}",
            lambda: f"size {self.negation()}BETWEEN {self.number()!r} AND {self.number()!r}",
            lambda: f"price {self.negation()}IN ({self.number()!r}, {self.number()!r}, 3)",
            lambda: f"{self.sum()} {self.operator()} {self.sum()}",
            lambda: f"brand {self.operator()} {self.quoted()}",
            lambda: f"brand {self.negation()}IN ({self.quoted()}, {self.quoted()})",
            lambda: f"brand {self.negation()}LIKE '%{self.choice('a', '_', 'é', 'e_%')}%'",
            lambda: f"CASEI(brand) = CASEI({self.quoted()})",
            lambda: f"{self.choice(*SCHEMA)} IS {self.negation()}NULL",
            lambda: f"made {self.operator()} TIMESTAMP('2026-01-31T10:00:00Z')",
            lambda: "T_DURING(made, INTERVAL('2020-01-01T00:00:00Z', '..'))",
            lambda: f"day {self.operator()} DATE('2026-01-31')",
            lambda: f"sold = {self.choice('TRUE', 'FALSE')}",
            self.box,
            self.triangle,
            lambda: f"{self.choice(*words)}(about, ({self.quoted()}, 'red'))",
            lambda: "TRUE",
        )

    def choice(self, *options: Any) -> Any:
        return options[int(self.random.random() * len(options))]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self, draw: Callable[[], Any], most: int) -> list[Any]:
        return [draw() for _ in range(int(self.random.random() * (most + 1)))]

    # Values

    def number(self) -> Any:
        return self.random.randrange(-64, 65) / 8 if self.chance(0.6) else self.choice(*NUMBERS)

    def text(self) -> str:
        return str(self.choice(*STRINGS)) if self.chance(0.9) else "".join(chr(self.random.randrange(1, 0xD7FF)) for _ in range(5))

    def point(self) -> Any:
        x, y = self.random.randrange(-1440, 1441) / 8, self.random.randrange(-720, 721) / 8
        return self.choice((x, y), [x, y], {"type": "Point", "coordinates": [x, y]}, [x, y, x + 1, min(y + 1, 90)])

    def shape(self) -> Any:
        return self.choice(
            (1.0, 2.0),
            {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, self.number()], [0, 0]]]},
            {"type": "LineString", "coordinates": [[0, 0], [self.number(), 1]]},
            {"type": "GeometryCollection", "geometries": []},
        )

    def scalar(self) -> Any:
        """Anything that stands for itself."""
        kind = int(self.random.random() * 6)
        if kind == 0:
            return self.number()
        if kind == 1:
            return self.choice(*WRONG_NUMBERS)
        if kind == 2:
            return self.text()
        if kind == 3:
            return self.choice(*WRONG_STRINGS)
        return self.choice(*TIMES, *WRONG_TIMES, *OTHERS, date(2026, 1, 31), datetime(1, 1, 1), datetime.max.replace(tzinfo=UTC))

    def anything(self, depth: int = 3) -> Any:
        kind = self.random.random()
        if depth == 0 or kind < 0.6:
            return self.scalar()
        if kind < 0.8:
            return self.some(lambda: self.anything(depth - 1), 4)
        return {self.name(): self.anything(depth - 1) for _ in range(self.random.randrange(4))}

    def name(self) -> Any:
        return self.choice(*SCHEMA, *NAMES, "op", "args", "property", "near", "weights", "lo", "hi", "values", self.text())

    def value(self, name: str) -> Any:
        """What an attribute of that name takes."""
        if self.chance(0.02):
            return self.anything(2)
        if name in ("price", "size"):
            return self.number() if name == "price" else self.random.randrange(-64, 65) / 8
        if name == "brand":
            return self.text()
        if name == "made":
            return self.choice(*TIMES)
        if name == "day":
            return self.choice("2026-01-31", "0001-01-01", date(2026, 2, 1))
        if name == "sold":
            return self.chance(0.5)
        if name == "place":
            return self.point()
        if name == "area":
            return self.shape()
        return self.choice(self.text(), self.some(self.text, 3), "Red p30 BLUE")

    def spoilt(self, made: Any) -> Any:
        """Some part of it is something else."""
        if isinstance(made, dict) and made and self.chance(0.8):
            key = self.choice(*made)
            part = self.spoilt(made[key]) if self.chance(0.5) else self.anything(2)
            return {**made, (key if self.chance(0.8) else self.name()): part}
        if isinstance(made, list) and made and self.chance(0.8):
            at = self.random.randrange(len(made))
            return [*made[:at], self.spoilt(made[at]), *made[at + 1 :]]
        if isinstance(made, str) and made and self.chance(0.8):
            at = self.random.randrange(len(made))
            other = self.choice(
                "", "(", ")", "'", '"', "{", "[", "\0", "\ud800", " ", "9", "-", "NOT ", "=", ",", "\n", made[at:], "e9"
            )
            return made[:at] + other + made[at + self.random.randrange(3) :]
        return self.anything(2)

    # Inputs

    def event(self, key: str = "id") -> Any:
        made = {name: self.value(name) for name in SCHEMA if self.chance(0.5)}
        if self.chance(0.9):
            made[key] = f"e{self.random.randrange(200)}" if self.chance(0.9) else self.text()
        if self.chance(0.1):
            made["expires"] = self.choice(3, 5, "2026-01-31T10:00:00Z")
        if self.chance(0.05):
            made = {"specversion": "1.0", "id": made.pop(key, "x"), "type": "t", "source": "s", "data": made}
        elif self.chance(0.05):
            made = {"type": "Feature", "id": "f", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": made}
        if self.chance(0.3):
            made = self.spoilt(made)
        if self.chance(0.1):
            return self.written(made)
        return made if self.chance(0.97) else self.anything()

    def written(self, made: Any) -> Any:
        """As JSON, sometimes broken."""
        try:
            text = json.dumps(made)
        except (TypeError, ValueError):
            return made
        return self.choice(text, text.encode(), self.spoilt(text))

    def quoted(self) -> str:
        return "'" + self.text().replace("'", "''") + "'"

    def filter(self, depth: int = 3) -> str:
        """CQL2 text."""
        if depth and self.chance(0.45):
            if self.chance(0.3):
                return f"NOT ({self.filter(depth - 1)})"
            return f"({self.filter(depth - 1)} {self.choice('AND', 'OR')} {self.filter(depth - 1)})"
        return str(self.choice(*self.leaves)())

    def operator(self) -> str:
        return str(self.choice("=", "<>", "<", "<=", ">", ">="))

    def negation(self) -> str:
        return str(self.choice("", "NOT "))

    def box(self) -> str:
        low, high = sorted((self.random.randrange(-64, 65) / 8, self.random.randrange(-64, 65) / 8))
        return f"S_INTERSECTS(place, BBOX({low}, {low}, {high}, {high}))"

    def triangle(self) -> str:
        side = self.random.randrange(1, 65) / 8
        return f"{self.choice('S_WITHIN', 'S_DISJOINT', 'S_CROSSES')}(area, POLYGON((0 0, {side} 0, 0 {side}, 0 0)))"

    def sum(self) -> str:
        operator = self.choice("+", "-", "*", "/", "%", "div", "^")
        return f"({self.choice('price', 'size', '2')} {operator} {self.choice('size', 'price', '0', '1e308')})"

    def tree(self, depth: int = 2) -> Any:
        """CQL2 JSON."""
        if depth and self.chance(0.4):
            return {"op": self.choice("and", "or", "not"), "args": self.some(lambda: self.tree(depth - 1), 3)}
        name = self.choice(*SCHEMA)
        operator = self.choice(
            "=", "<>", "<", "between", "in", "like", "isNull", "s_intersects", "a_contains", "t_after", "casei", "nothing"
        )
        return {"op": operator, "args": [{"property": name}, *self.some(lambda: self.value(name), 2)]}

    def any_filter(self) -> Any:
        made: Any = self.filter() if self.chance(0.7) else self.tree()
        return made if self.chance(0.75) else self.spoilt(made)

    def subscription(self) -> tuple[Any, Any, dict[str, Any]]:
        id = f"s{self.random.randrange(150)}" if self.chance(0.9) else self.choice(self.text(), *WRONG_STRINGS, 5, None)
        ranking = {name: self.rank(name) for name in RANKING if self.chance(0.2)}
        if ranking and self.chance(0.15):
            ranking[self.choice(*ranking)] = self.anything(2)
        return id, None if self.chance(0.2) else self.any_filter(), ranking

    def rank(self, name: str) -> Any:
        if self.chance(0.1):
            return self.anything(2)
        if name == "score":
            return self.choice(self.number(), "1 + 2 * price", "1e308 * price + 1e308", "price - size", "brand", "price * size")
        if name == "weights":
            return {"price": abs(self.number()), self.choice("size", "brand"): 2}
        if name == "similarity":
            return self.choice((0.5, 0.5), (0, 0), (1, 1), (0.3, 0), [0.5, 2])
        if name == "k":
            return self.choice(0, 1, 2, 5, 2**31 - 1, 2**31, -1, 1.5)
        if name == "window":
            return self.choice(*WINDOWS, *WINDOWS, *WRONG_WINDOWS)
        if name == "by":
            near = {"near": {"price": self.number()}, **({"weights": {"price": 2}} if self.chance(0.3) else {})}
            return self.choice(
                *BYS, *WRONG_BYS, near, near, near, {**near, "decay": "1 day"}, json.dumps(near), {"by": "price", "decay": "1 s"}
            )
        if name == "expires":
            return self.choice(3, 10**6, *TIMES)
        return self.choice("ann", "bob") if name == "owner" else self.choice(0.1, 0.01, 1e-9, 1, 0)

    def schema(self) -> Any:
        types = (
            "number",
            "category",
            "bool",
            "time",
            "date",
            "place",
            "words",
            td.Number(0, 1),
            td.Words(),
            {"type": "number", "lo": 0},
            "string",
        )
        made: Any = {
            self.choice(self.text(), "a", "b", "price", "id"): self.choice(*types) for _ in range(self.random.randrange(5))
        }
        made = self.spoilt(made) if self.chance(0.3) else made
        return self.written(made) if self.chance(0.3) else made

    def table(self, columns: dict[str, tuple[pa.DataType, Callable[[], Any]]]) -> pa.Table:
        """A table with some of these columns, each its type and a way of drawing a value; or of other types."""
        rows, arrays, names = self.random.randrange(1, 5), [], []
        for name in (*(name for name in columns if self.chance(0.4)), *self.some(lambda: self.choice(*columns, "other"), 1)):
            kind, draw = columns.get(name, (pa.string(), self.text))
            if self.chance(0.08):
                kind, draw = self.choice(*TYPES), lambda: self.anything(1)
            if pa.types.is_map(kind):
                # Arrow itself ends the process at a key that is null.
                draw = lambda: [(self.text(), self.random.randrange(9))]  # noqa: E731
            arrays.append(self.column(kind, [None if self.chance(0.15) else draw() for _ in range(rows)]))
            names.append(name)
        return pa.Table.from_arrays(arrays or [self.column(pa.string(), ["x"])], names=names or ["id"])

    def column(self, kind: pa.DataType, values: list[Any]) -> pa.Array:
        """Of that type, or of whichever the values make; nulls if no column can hold them."""
        for wanted in (kind, None):
            try:
                made = pa.array(values, wanted)
                made.validate(full=True)
                return made
            except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
                continue
        return pa.nulls(len(values), kind)

    def events_table(self, key: str = "id") -> pa.Table:
        return self.table(
            {
                key: (pa.string(), lambda: f"e{self.random.randrange(200)}"),
                "price": (pa.float64(), self.number),
                "size": (pa.float64(), lambda: self.random.randrange(-64, 65) / 8),
                "brand": (pa.string(), self.text),
                "made": (pa.timestamp("us", "UTC"), lambda: datetime(2026, 1, 1, tzinfo=UTC)),
                "day": (pa.date32(), lambda: date(2026, 1, 31)),
                "sold": (pa.bool_(), lambda: self.chance(0.5)),
                "place": (pa.list_(pa.float64()), lambda: self.choice([1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [500.0, 0.0], [1.0])),
                "area": (pa.binary(), lambda: self.choice(POINT, POINT[:7], b"")),
                "about": (pa.list_(pa.string()), lambda: self.some(self.text, 3)),
                "expires": (pa.int64(), lambda: self.choice(5, 2**62)),
                "time": (pa.int64(), lambda: self.choice(1, 2)),
                "deleted": (pa.bool_(), lambda: self.chance(0.2)),
            }
        )

    def subscriptions_table(self) -> pa.Table:
        return self.table(
            {
                "id": (pa.string(), lambda: f"s{self.random.randrange(150)}"),
                "score": (pa.float64(), self.number),
                "k": (pa.int64(), lambda: self.choice(0, 1, 3, 2**40)),
                "window": (pa.string(), lambda: self.choice("2 s", "3 events", "1 day", "0 s")),
                "by": (pa.string(), lambda: self.choice(*BYS, '{"near": {"price": 5}}')),
                "expires": (pa.int64(), lambda: self.choice(3, 10**6)),
                "owner": (pa.string(), self.text),
                "price.lo": (pa.float64(), self.number),
                "price.hi": (pa.float64(), self.number),
                "price.weight": (pa.float64(), lambda: abs(self.number())),
                "made.hi": (pa.timestamp("us", "UTC"), lambda: datetime(2026, 1, 1, tzinfo=UTC)),
                "day.lo": (pa.date32(), lambda: date(2026, 1, 31)),
                "brand.in": (pa.list_(pa.string()), lambda: self.some(self.text, 3)),
                "place.box": (pa.list_(pa.float64(), 4), lambda: [0.0, 0.0, abs(self.random.randrange(8)), 8.0]),
                "about.all": (pa.list_(pa.string()), lambda: self.some(self.text, 2)),
                "about.any": (pa.list_(pa.string()), lambda: self.some(self.text, 2)),
                **({"filter": (pa.string(), self.any_filter)} if self.chance(0.3) else {}),
            }
        )

    def job(self) -> tuple[bytes, list[str]]:
        """A job file and what `--set` says."""
        lines = [str(self.spoilt(line)) if self.chance(0.06) else line for line in JOB if self.chance(0.93)]
        raw = "\n".join(lines).encode(errors="surrogatepass")
        if self.chance(0.05):
            raw = raw[: self.random.randrange(len(raw) + 1)] + b"\xff" + raw[self.random.randrange(len(raw) + 1) :]
        changes = (
            "run.trigger=5 seconds",
            "topic=3",
            "a.b.c.d=5",
            "=",
            "events.options=[",
            "events.options.path=x",
            "run.settings=7",
            "x",
        )
        return raw, self.some(lambda: self.choice(*changes, self.text()), 2)


POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
RANKING = ("score", "weights", "similarity", "k", "window", "by", "expires", "owner", "error")
JOB = (
    *("[topic]", 'path = "data/offers"', 'name = "offers"', 'schema = { price = "number", place = "place" }', 'key = "sku"'),
    *("[subscriptions]", 'format = "parquet"', 'options = { path = "x" }', "[events]", 'format = "json"', 'value = "json"'),
    *('options = { path = "data/events", maxFilesPerTrigger = 1 }', "[answer]", 'kind = "match"', "k = 5", "relaxed = true"),
    *("[sink]", 'format = "parquet"', "[run]", 'checkpoint = "c"', 'trigger = "available-now"', "settings = { a = 1 }"),
)
