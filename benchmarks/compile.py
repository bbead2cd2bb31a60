"""How fast subscriptions are compiled: five-predicate CQL2 filters a second, text and JSON, beside cql2's parse alone; texts of one
shape, filled in (`templates`) and always parsed; and the columnar form (two ranges, a box, two words), which no parser sees.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import cql2
import numpy as np
import pyarrow as pa

from experiments.report import provenance
from tidings import Category, Number, Place, Schema, Time, Words
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.filter import syntax
from tidings.model.filter.compile import compile_filter

RESULT = Path(__file__).parent / "results" / "compile.json"
SCHEMA = Schema({"price": Number(0, 10_000), "brand": Category(), "place": Place(), "about": Words(), "made": Time()})
FILTERS, REPEATS, SEED = 5_000, 5, 1
ROWS, DISTINCT_WORDS = 1_000_000, 50_000


def five_predicates(random_state: random.Random) -> str:
    price, x, y = random_state.randrange(10_000), random_state.uniform(-170, 170), random_state.uniform(-80, 80)
    first, second = random_state.randrange(5000), random_state.randrange(5000)
    return (
        f"price <= {price} AND brand = 'brand{random_state.randrange(500)}' "
        f"AND A_CONTAINS(about, ('word{first}', 'word{second}')) "
        f"AND S_INTERSECTS(place, BBOX({x:.4f}, {y:.4f}, {x + 1:.4f}, {y + 1:.4f})) "
        f"AND made >= TIMESTAMP('2026-{random_state.randrange(1, 13):02}-01T00:00:00Z')"
    )


def four_predicates(random_state: random.Random) -> str:
    """The same without the time, which no template takes."""
    return five_predicates(random_state).split(" AND made")[0]


def rate(work: Callable[[Any], object], inputs: Sequence[Any]) -> list[float]:
    """Inputs a second of process time, once a repeat."""
    rates = []
    for _ in range(REPEATS):
        start = time.process_time()
        for item in inputs:
            work(item)
        rates.append(len(inputs) / (time.process_time() - start))
    return rates


def always_parsed(texts: Sequence[str]) -> list[float]:
    with mock.patch.object(syntax, "parse_shaped", lambda text, parse: parse(text)):
        return rate(lambda text: compile_filter(SCHEMA, text), texts)


def columnar(rows: int) -> pa.Table:
    """Subscriptions as predicate columns; the words are drawn by Zipf's law."""
    random_state = np.random.default_rng(SEED)
    lo, made = random_state.uniform(0, 10_000, rows), random_state.integers(1_700_000_000_000_000, 1_800_000_000_000_000, rows)
    x, y = random_state.uniform(-170, 170, rows), random_state.uniform(-80, 80, rows)
    words = np.array([f"word{number}" for number in range(DISTINCT_WORDS)])[random_state.zipf(1.3, 2 * rows) % DISTINCT_WORDS]
    instants = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": pa.array(np.arange(rows)).cast(pa.string()),
            "price.lo": lo,
            "price.hi": lo + 100,
            "made.lo": pa.array(made, instants),
            "made.hi": pa.array(made + 10**12, instants),
            "place.box": pa.FixedSizeListArray.from_arrays(np.column_stack([x, y, x + 1, y + 1]).ravel(), 4),
            "about.all": pa.ListArray.from_arrays(np.arange(0, 2 * rows + 1, 2, dtype=np.int32), pa.array(words)),
        }
    )


def main() -> None:
    random_state = random.Random(SEED)
    texts = [five_predicates(random_state) for _ in range(FILTERS)]
    shaped = [four_predicates(random_state) for _ in range(FILTERS)]
    trees = [cql2.parse_text(text).to_json() for text in texts]
    rates = {
        "cql2 parse only, text": rate(lambda text: cql2.parse_text(text).to_json(), texts),
        "compile_filter, text": rate(lambda text: compile_filter(SCHEMA, text), texts),
        "text of one shape": rate(lambda text: compile_filter(SCHEMA, text), shaped),
        "text of one shape, always parsed": always_parsed(shaped),
        "compile_filter, JSON text": rate(lambda text: compile_filter(SCHEMA, text), [json.dumps(tree) for tree in trees]),
        "compile_filter, dict": rate(lambda tree: compile_filter(SCHEMA, tree), trees),
    }
    for name, values in rates.items():
        print(f"{name:32} {max(values):10,.0f} filters/s (worst of {REPEATS}: {min(values):,.0f})")
    tables = rate(lambda table: subscriptions_from_arrow(SCHEMA, Vocabularies(SCHEMA), table), [columnar(ROWS)])
    columns = [tables_a_second * ROWS for tables_a_second in tables]
    print(f"{'columns':32} {max(columns):10,.0f} subscriptions/s (worst of {REPEATS}: {min(columns):,.0f})")
    facts = {**provenance(), "cql2": version("cql2"), "seed": SEED, "filters": FILTERS, "rows": ROWS}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({**facts, "filters_per_second": rates, "columnar_per_second": columns}, indent=1) + "\n")


if __name__ == "__main__":
    main()
