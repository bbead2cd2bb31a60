"""Damaged filters: whatever is done to a filter, it compiles or is refused with FilterError, and never anything else."""

from __future__ import annotations

import copy
import json
import random
import warnings

import cql2
import pytest

from docs.generate_filters import EXAMPLES, renamed
from tests.model.filter.samples import SCHEMA, random_event, random_filter
from tidings.errors import FilterError, NeverMatchesWarning
from tidings.model.filter.compile import compile_filter

SEED = 20261116
SCRAPS = (
    None,
    True,
    0,
    -1.5,
    1e308,
    "",
    "x",
    "..",
    "2026-01-01",
    [],
    ["a", 1],
    [[]],
    {},
    {"property": "price"},
    {"property": "nowhere"},
)
SCRAPS += (
    {"bbox": [0, 0, 1, 1]},
    {"bbox": ["a", 0, 1, 1]},
    {"bbox": []},
    {"date": 3},
    {"date": {"property": "made"}},
    {"timestamp": "x"},
)
SCRAPS += (
    {"interval": []},
    {"interval": ["..", ".."]},
    {"interval": [{"property": "made"}]},
    {"interval": [{"property": "price"}, ".."]},
)
SCRAPS += ({"type": "Point", "coordinates": []}, {"type": "Polygon", "coordinates": [[]]}, {"type": "Point", "coordinates": [1, 2]})
SCRAPS += (
    {"op": "casei", "args": []},
    {"op": "casei", "args": ["A"]},
    {"op": "+", "args": [1, 2]},
    {"op": "-", "args": []},
    {"op": "and", "args": []},
)
OPERATORS = (
    "=",
    "<",
    "in",
    "between",
    "like",
    "isNull",
    "not",
    "and",
    "or",
    "+",
    "casei",
    "a_contains",
    "a_overlaps",
    "s_within",
    "t_during",
    "f",
)


def places(tree, path=()):
    """Every (container, key) inside a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in items:
        yield tree, key
        yield from places(child)


def damaged(r, tree):
    tree = copy.deepcopy(tree)
    for _ in range(r.randrange(1, 4)):
        where = list(places(tree))
        if not where:
            return r.choice(SCRAPS)
        container, key = r.choice(where)
        if key == "op":
            container[key] = r.choice(OPERATORS)
        elif isinstance(container, list) and r.random() < 0.3:
            container.insert(key, copy.deepcopy(r.choice(SCRAPS))) if r.random() < 0.5 else container.pop(key)
        else:
            container[key] = copy.deepcopy(r.choice(SCRAPS))
    return tree


def outcome(source, events):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        try:
            clauses = compile_filter(SCHEMA, source)
        except FilterError as error:
            return "refused" if "\n" not in str(error) else f"refused in several lines: {error}"
    for values in events:
        for clause in clauses:
            clause.holds(SCHEMA, values)
    return "compiled"


@pytest.mark.parametrize("seed", [SEED])
def test_damaged_filters_compile_or_are_refused(seed):
    r = random.Random(seed)
    events = [random_event(r)[0] for _ in range(5)]
    examples = [renamed(example["json"]) for example in json.loads(EXAMPLES.read_text()).values() if "json" in example]
    outcomes = []
    for _ in range(4_000):
        tree = r.choice(examples) if r.random() < 0.2 else cql2.parse_text(random_filter(r)).to_json()
        source = damaged(r, tree)
        if isinstance(source, dict):
            outcomes.append(outcome(source, events))
    assert {"refused", "compiled"} == set(outcomes)


@pytest.mark.parametrize("seed", [SEED])
def test_damaged_texts_compile_or_are_refused(seed):
    r = random.Random(seed)
    events = [random_event(r)[0] for _ in range(5)]
    outcomes = []
    for _ in range(3_000):
        text = list(random_filter(r) * r.choice((1, 1, 1, 3)))
        for _ in range(r.randrange(1, 4)):
            start = r.randrange(len(text) + 1)
            text[start : start + r.choice((0, 0, 1, 5))] = r.choice(
                ("(", ")", "'", '"', ",", " NOT ", "-", " IN ", "é", "\n", "\0", "{", "1e999", "group0")
            )
        outcomes.append(outcome("".join(text), events))
    assert {"refused", "compiled"} == set(outcomes)
