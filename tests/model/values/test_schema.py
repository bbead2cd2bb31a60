"""Schemas: to and from JSON and TOML, the order of dimensions, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import SchemaError
from tidings.model.values.schema import RESERVED, Attribute, Category, Number, Place, Schema, Time, Words

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name not in RESERVED)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
DOMAINS = st.tuples(FINITE, FINITE).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: Number(*ends))
TYPES = st.one_of(
    DOMAINS, st.sampled_from([Number(), Number(lo=0), Category(), Time(), Place(), Place(plane=True), Words(), Words("as-is")])
)


@given(st.dictionaries(NAMES, TYPES))
def test_json_and_toml_read_back(attributes: dict[str, Attribute]) -> None:
    schema = Schema(attributes)
    for again in (Schema.from_json(schema.to_json()), Schema.from_toml(schema.to_toml()), Schema.from_dict(schema.to_dict())):
        assert again == schema
        assert list(again) == list(schema)


def test_dimensions_and_served_attributes() -> None:
    schema = Schema({"b": Words(), "at": Place(), "z": Time(), "a": Category(), "to": Place(), "tags": Words(), "n": Number()})
    assert schema.ranges == ("z", "a", "n")
    assert schema.dimension == {"z": 0, "a": 1, "n": 2}
    assert (schema.place, schema.words) == ("at", "b")
    assert "Words(tokenizer='plain', language=None, keep='')" in repr(schema)


def test_short_and_long_forms() -> None:
    assert Schema.from_dict({"price": "number", "brand": {"type": "Category"}}) == Schema({"price": Number(), "brand": Category()})
    assert Schema.from_toml("[schema]\nprice = { type = 'number', lo = 0, hi = 9 }\n") == Schema({"price": Number(0, 9)})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Number(3, 3), "Number(3, 3): a domain is two numbers, lo < hi"),
        (lambda: Number(math.nan, 3), "Number(nan, 3): a domain is two numbers, lo < hi"),
        (lambda: Number("0", "9"), "Number('0', '9'): a domain is two numbers, lo < hi"),
        (lambda: Words("stemmed"), "Words(tokenizer='stemmed'): a tokenizer is 'plain', 'as-is', a function, or the name of one"),
        (lambda: Words(3), "Words(tokenizer=3): a tokenizer is"),
        (lambda: Words(lambda text: [text]), "a function of a module is accepted, which others find by its name"),
        (lambda: Words(language="klingon"), "Words(language='klingon'): a language is one of any, arabic,"),
        (lambda: Words(keep="a+"), "Words(keep='a+'): characters but letters, digits, spaces, _ and * are accepted"),
        (lambda: Words("as-is", language="english"), "language and keep go with the tokenizer 'plain' alone"),
        (lambda: Place("yes"), "Place(plane='yes'): plane is true or false"),
        (lambda: Schema({"a b": Number()}), "attribute name 'a b': a name is letters, digits and _"),
        (lambda: Schema({"1a": Number()}), "attribute name '1a'"),
        (lambda: Schema({3: Number()}), "attribute name 3"),
        (lambda: Schema({"id": Category()}), "attribute name 'id' is reserved; choose another"),
        (lambda: Schema({"price": Number}), "a type is one of Number, Category, Bool, Time, Date, Place, Words"),
        (lambda: Schema.from_dict({"price": "money"}), "attribute 'price' has type 'money': a type is one of number, category"),
        (
            lambda: Schema.from_dict({"price": {"type": "number", "max": 3}}),
            "no option 'max'; it takes ['hi', 'lo']",
        ),
        (lambda: Schema.from_dict({"price": 3}), "attribute 'price' is 3: a type's name"),
        (lambda: Schema.from_json("[]"), "schema []: an object with a type for each attribute is accepted"),
        (lambda: Schema.from_json("{"), "the schema is broken JSON"),
        (lambda: Schema.from_toml("[schema"), "the schema is broken TOML"),
        (lambda: Schema.from_toml("[topic]"), "the TOML has ['topic'] and no [schema]"),
    ],
)
def test_refused(make: Any, sentence: str) -> None:
    with pytest.raises(SchemaError) as error:
        make()
    assert sentence in str(error.value)
