"""The tables of the evidence page tell every stored result with its command, and nothing that is not stored."""

from __future__ import annotations

import json

from docs.generate_evidence import PAPERS, RESULTS, flat, generated, tables, turned


def test_every_stored_result_is_told_with_its_command():
    page = generated()
    for path in RESULTS.glob("*.json"):
        assert f"`benchmarks/results/{path.name}`" in page
    for path in PAPERS.glob("*/claims.json"):
        paper, _, full = path.parent.name.partition("-")
        assert f"`python -m experiments {'--full ' if full else ''}{paper}`" in page
        for claim in json.loads(path.read_text())["claims"]:
            assert claim["text"].replace("|", "\\|") in page
    assert "`make soak`" in page
    assert "`python -m tests.console.memory`" in page


def test_rows_of_any_shape():
    stored = {
        "run": {"commit": "x"},
        "rows": [{"a": 1, "b": {"c": 0.5, "d": [1.0, 3.0, 2.0]}}],
        "each": {"first": {"us": 2.0}, "second": [4.0, 6.0]},
        "alone": {"k": 10_000, "what": "text"},
    }
    assert dict(tables(stored)) == {
        "rows": [{"a": "1", "b.c": "0.5", "b.d": "2 (median of 3)"}],
        "each": [{"what": "first", "us": "2"}, {"what": "second", "median": "5 (median of 2)"}],
        "alone": [{"k": "10,000", "what": "text"}],
    }


def test_a_wide_table_of_few_rows_is_turned():
    wide = {"what": "run", **{f"c{i}": i for i in range(9)}}
    assert turned([flat(wide)])[:2] == [{"": "c0", "run": "0"}, {"": "c1", "run": "1"}]
    assert turned([{"a": 1}]) == [{"a": 1}]
