"""Mistakes that people make in filters, and the sentence that each is answered with."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.errors import FilterError, UnknownAttributeError
from tidings.model.filter.compile import compile_filter
from tidings.model.filter.hints import hint
from tidings.model.values.schema import Category, Number, Schema

SCHEMA = Schema({"price": Number(), "brand": Category()})
VALUE = "expected a value: an attribute, a number, a text in 'single quotes' or a group"
NEXT = "expected AND, OR, an operator or the end"
MISTAKES = {
    "price == 5": f"column 8, near 'price == 5': {VALUE}; write = for == at column 7",
    "brand = 'A": f"{VALUE}; the quotation that begins at column 9 is never closed",
    "price < 5 && brand = 'a'": f"{NEXT}; write AND for && at column 11",
    "price < 5 || brand = 'a'": f"{NEXT}; write OR for || at column 11",
    "price < 5 AND !(brand = 'a')": f"{VALUE}; write NOT, or <> for not equal for ! at column 15",
    "price =< 5": f"{VALUE}; write <= for =< at column 7",
    "price ≤ 5": f"{NEXT}; write <= for ≤ at column 7",
    "brand = \u2018A\u2019": f"{VALUE}; write ' around a text for \u2018 at column 9",
    "(price < 5": f"{NEXT}; the parenthesis that opens at column 1 is never closed",
    "price < 5)": f"{NEXT}; the parenthesis that closes at column 10 was never opened",
    "price < ": VALUE,
    "price IS 5": "expected NULL, or NOT before LIKE, IN, BETWEEN or NULL",
    "price BETWEEN 1 5": "expected AND, as in BETWEEN 1 AND 5, or arithmetic",
    "price < 5 AND\n  brand == 'a'": f"line 2, column 10, near '  brand == 'a'': {VALUE}; write = for == at line 2, column 9",
    'brand = "A"': "attribute 'A' is not in the schema: it has price, brand; at column 9 it stands where a text may: "
    "texts are in single quotes, 'A'",
    "brand IN (A, 'b')": "texts are in single quotes, 'A'",
    "prise < 5": "attribute 'prise' is not in the schema: it has price, brand; was 'price' meant?",
    "colour = 'red'": "attribute 'colour' is not in the schema: it has price, brand",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_in_a_users_words(text):
    with pytest.raises(FilterError) as error:
        compile_filter(SCHEMA, text)
    assert MISTAKES[text] in str(error.value).replace('"', "'"), str(error.value)
    assert not re.search(r"UnaryNot|EOI|DECIMAL|NotFlag", str(error.value))


def test_what_is_no_mistake_has_no_hint():
    assert compile_filter(SCHEMA, "price != 5 AND brand <> '=='")
    assert hint("brand = '&& || == (' AND price != 5") is None


def test_the_attribute_that_is_not_there_is_named():
    with pytest.raises(UnknownAttributeError) as error:
        compile_filter(SCHEMA, {"op": "<", "args": [{"property": "prise"}, 5]})
    assert error.value.attribute == "prise"
    assert str(error.value).endswith("was 'price' meant?")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.sampled_from("'\"()=&|! <>ab5\n≤`"), max_size=24))
def test_whatever_is_written_is_answered(text):
    """A hint never fails, and no sentence is the grammar's."""
    told = ""
    try:
        compile_filter(SCHEMA, text)
    except FilterError as error:
        told = str(error)
    assert "UnaryNot" not in told
