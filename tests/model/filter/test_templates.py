"""Texts of a known shape against the parser itself: the same tree, or the same refusal, whatever the literals."""

from __future__ import annotations

import json
import random

import cql2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.generate_filters import DEVIATIONS, EXAMPLES, SHOWCASE
from tests.model.filter.samples import random_filter
from tidings.errors import FilterError
from tidings.model.filter import templates as shapes
from tidings.model.filter.syntax import _parse_short, parse_text

SEED = 20261117
TEMPLATES = (
    "price = {}",
    "price < -{} AND stars >= {}",
    "price > - {} OR NOT stars <> +{}",
    "price = -({}) AND a2 = {} AND b_3.c:4 < {}",
    "price -{} = {}",
    "price-{}={} and {}<price",
    "price * -{} + {} ^ {} / 2 >= {} % 3",
    "price BETWEEN {} AND {} AND stars BETWEEN -{} AND {}",
    "price IN ({}, {}, -{}) OR brand IN ({}, {})",
    "price={}AND stars={}",
    "brand = {} AND CASEI(brand) = CASEI({})",
    "brand LIKE {} OR {} = brand",
    "made > DATE({}) AND made <= TIMESTAMP({})",
    "T_DURING(made, INTERVAL({}, {}))",
    "A_CONTAINS(about, ({}, {}))",
    "S_INTERSECTS(place, BBOX({}, -{}, {}, {}))",
    "S_INTERSECTS(place, POINT({} {}))",
    "S_WITHIN(place, POLYGON(({} {}, 1 0, 1 1, {} {})))",
    "S_INTERSECTS(place, ENVELOPE({}, {}, {}, {}))",
    '"a 7" = {} AND "it\'s" = {}',
    "f({}, {}, a) = {}",
    "a = {}{}",
    "a = {} {}",
    "{}",
)
NUMBERS = st.one_of(
    st.integers(0, 10**20).map(str),
    st.floats(0, allow_infinity=False, allow_nan=False).map(repr),
    st.from_regex(r"\A[0-9]{1,4}\.?[0-9]{0,3}([eE][-+]?[0-9]{1,3})?\Z"),
    st.sampled_from(["0", "0.0", "007", "1e999", "1e-05", "9" * 400, ".5", "5.", "-3", "73100027", "73100028"]),
)
STRINGS = st.one_of(
    st.sampled_from(
        ["''", "'a''b'", "''''", "'a", "'\\'", "' AND '", "'('", "'\ud800'", "'\"'", "'é\u00a0'", "'\0\n'", "'2026-01-01'", "'..'"]
    ),
    st.sampled_from(["'telltale0'", "'telltale1'", "'POINT(1 2)'", "'12'", "'null'"]),
    st.text(max_size=12).map("'{}'".format),
)


def outcome(parse, text):
    try:
        return repr(parse(text))
    except FilterError as error:
        return str(error)


def assert_same(text):
    assert outcome(parse_text, text) == outcome(_parse_short, text), text


def varied(r, text):
    """The text with other numbers and strings in the places of its own."""
    return shapes._LITERAL.sub(lambda found: f"'{r.randrange(99)}'" if found[0][0] == "'" else repr(r.randrange(999) / 8), text)


def corpus():
    r = random.Random(SEED)
    texts = [example["text"] for example in json.loads(EXAMPLES.read_text()).values()]
    return [*texts, *SHOWCASE, *(text for text, _, _ in DEVIATIONS), *(random_filter(r) for _ in range(1_500))]


def test_known_texts_of_every_kind():
    r = random.Random(SEED)
    shapes._shape.cache_clear()
    for text in corpus():
        if len(text) <= 500 and text.count("(") <= 12:
            for version in (text, text, text, varied(r, text), varied(r, text)):
                assert_same(version)


@settings(max_examples=150)
@given(st.sampled_from(TEMPLATES), st.lists(st.booleans(), min_size=4, max_size=4), st.data())
def test_templates_with_any_literals(template, quoted, data):
    """Five texts of one kind, so that the last ones are filled in where the shape can be learnt."""
    kinds = st.tuples(*(STRINGS if quoted[place % 4] else NUMBERS for place in range(template.count("{}"))))
    for literals in data.draw(st.lists(kinds, min_size=5, max_size=5)):
        assert_same(template.format(*literals))


def counted(texts):
    """How many of the texts the parser read whole."""
    read = []

    def parse(text):
        read.append(text)
        return cql2.parse_text(text).to_json()

    for text in texts:
        assert repr(shapes.parse_shaped(text, parse)) == repr(cql2.parse_text(text).to_json())
    return len(read)


@pytest.mark.parametrize(
    ("template", "literals"),
    [
        ("p = {} AND q < -{}", [("1", "2"), ("0.25", "0"), ("1e-7", "3"), ("17", "1E5")]),
        (
            "b = {} AND S_INTERSECTS(place, BBOX({}, 0, 1, {}))",
            [("'x'", "-1", "2"), ("'it is'", "-0.5", "2.5"), ("'é'", "-3", "4")],
        ),
        ("A_CONTAINS(w, ({}, {}))", [("'a'", "'b'"), ("'c'", "'d'"), ("'('", "'AND'")]),
    ],
)
def test_a_shape_is_learnt_from_its_second_text(template, literals):
    """Three reads of the parser: both texts, and the one with telltales."""
    shapes._shape.cache_clear()
    assert counted([template.format(*values) for values in literals * 3]) == 3


@pytest.mark.parametrize(
    "texts",
    [
        ["S_INTERSECTS(p, POLYGON((0 0, 1 0, 1 1)))", "S_INTERSECTS(p, POLYGON((0 0, 1 0, 0 0)))"],
        ["m > TIMESTAMP('2026-01-01T00:00:00Z')", "m > TIMESTAMP('2026-01-01T00:00:00.000Z')"],
        ["S_INTERSECTS(p, POINT(1 2))", "S_INTERSECTS(p, POINT(3 4))"],
        ["a = 'x''y'", "a = 'x''z'"],
        ['"a 1" = 2', '"a 1" = 3'],
        ["TRUE", "TRUE"],
    ],
)
def test_what_is_not_certain_goes_to_the_parser_each_time(texts):
    shapes._shape.cache_clear()
    counted(texts * 2)
    assert counted(texts * 3) == 3 * len(texts)


def test_a_filled_tree_is_nobody_elses():
    shapes._shape.cache_clear()
    trees = [parse_text(f"a = {i} AND b IN ({i}, 2)") for i in range(4)]
    assert [tree["args"][0]["args"][1] for tree in trees] == [0.0, 1.0, 2.0, 3.0]
    assert [tree["args"][1]["args"][1][0] for tree in trees] == [0.0, 1.0, 2.0, 3.0]


def test_no_more_shapes_are_kept_than_said():
    for i in range(shapes.SHAPES + 50):
        parse_text(f"a{i} = 1")
    assert shapes._shape.cache_info().currsize == shapes.SHAPES
