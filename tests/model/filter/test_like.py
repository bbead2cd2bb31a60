"""LIKE against the definition, in every way that it may be searched for, and that hostile patterns are cheap."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Category, Number, Schema
from tidings.errors import FilterError
from tidings.model.filter import like
from tidings.model.filter.compile import PRICE_LIMIT, compile_filter
from tidings.model.values.limits import recovering

SCHEMA = Schema({"brand": Category(), "price": Number()})


def defined(pattern: str, text: str) -> bool:
    """By dynamic programming over (characters of the pattern, characters of the text)."""
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    reach = {0}
    for token in tokens:
        if token == "%":
            reach = set(range(min(reach), len(text) + 1)) if reach else set()
        else:
            character = token[-1] if token[0] == "\\" else None if token == "_" else token
            reach = {i + 1 for i in reach if i < len(text) and character in (None, text[i])}
    return len(text) in reach


@given(st.text("ab%_", max_size=12), st.text("ab\n", max_size=14))
def test_like_is_its_definition(pattern, text):
    assert like.like_matcher(pattern)(text) == defined(pattern, text)


@given(st.text("ab%_", max_size=12), st.text("ab", max_size=14))
def test_shift_and_finds_the_same(pattern, text):
    small, like.SMALL = like.SMALL, -1
    try:
        assert like.like_matcher(pattern)(text) == defined(pattern, text)
    finally:
        like.SMALL = small


def test_hostile_patterns_are_compiled_and_matched_at_once():
    """Each took seconds by regular expressions; now each is a pass or two over its text."""
    text = "a" * 200_000
    assert like.like_matcher("%" + "_" * 400_000)("a" * 400_000)
    assert not like.like_matcher("%" + "_" * 400_000)(text)
    assert not like.like_matcher("%" + "a_" * 1_000 + "b%")(text)
    assert not like.like_matcher("%a" * 3_000 + "b%")(text)


def test_a_dear_pattern_is_refused_with_its_price_and_read_back():
    dear = f"brand LIKE '%{'a_' * 2_000}b%'"
    with pytest.raises(FilterError, match=f"a price of [0-9]+: at most {PRICE_LIMIT} is accepted"):
        compile_filter(SCHEMA, dear)
    with recovering():
        assert len(compile_filter(SCHEMA, dear)) == 1


def test_long_lists_are_accepted_and_hold():
    (clause,) = compile_filter(SCHEMA, f"price IN ({', '.join(map(str, range(0, 180_000, 2)))})")
    assert clause.holds(SCHEMA, {"price": 4_000.0})
    assert not clause.holds(SCHEMA, {"price": 4_001.0})
