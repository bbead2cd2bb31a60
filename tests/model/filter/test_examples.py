"""The standard's own examples, and the page that tells the language."""

import json

import cql2
import pytest

from docs.generate_filters import DEVIATIONS, EXAMPLES, PAGE, SHOWCASE, example_rows, example_schema, generated, judged, renamed
from tidings.errors import FilterError
from tidings.model.filter.compile import compile_filter


def test_the_page_says_what_the_compiler_answers():
    assert PAGE.read_text() == generated(), "run python -m docs.generate_filters"


def test_every_example_compiles_or_is_refused_with_a_reason():
    rows = example_rows()
    assert len(rows) == len(json.loads(EXAMPLES.read_text())) == 120
    refused = {name: becomes for name, _, becomes in rows if becomes.startswith("refused: ")}
    assert all(len(reason) > 20 for reason in refused.values())
    assert not any(reason.endswith("is not in the schema") for reason in refused.values())
    assert len(refused) == 18


def test_an_example_in_json_compiles_as_its_text_does():
    for name, example in json.loads(EXAMPLES.read_text()).items():
        if "json" not in example:
            continue
        text_tree, json_tree = (renamed(tree) for tree in (cql2.parse_text(example["text"]).to_json(), example["json"]))
        schema = example_schema(name, text_tree)
        assert _answer(schema, text_tree) == _answer(schema, json_tree), name


def _answer(schema, tree):
    try:
        return compile_filter(schema, tree)
    except FilterError as error:
        return str(error)


@pytest.mark.parametrize(("text", "item", "reason"), DEVIATIONS)
def test_deviations_are_still_there(text, item, reason):
    ours, theirs = judged(text, item)
    assert ours != theirs, "cql2 has changed its answer: take the case off the list"


def test_showcase_has_no_filter_twice():
    assert len(set(SHOWCASE)) == len(SHOWCASE)
