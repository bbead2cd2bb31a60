"""What has no finite answer does not hold, nor does its negation, and nothing raises, whatever the order of operands."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Number, Schema
from tidings.errors import FilterError
from tidings.model.filter.compile import compile_filter
from tidings.model.filter.linear import parse_linear
from tidings.model.filter.operands import compile_number
from tidings.rank.relevance import relevance_of

SCHEMA = Schema({"price": Number(), "size": Number()})
HUGE = {"price": 1e200, "size": 1e200}


def holds(text: str, values: dict[str, float]) -> bool:
    return any(clause.holds(SCHEMA, values) for clause in compile_filter(SCHEMA, text))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("(price * size) % 3 = 1", HUGE),
        ("((price * size) - (price * size)) div 3 = 1", HUGE),
        ("(price * size) div 3 = 1", HUGE),
        ("price div size = 1", {"price": 1.0, "size": 0.0}),
        ("price % size = 1", {"price": 1.0, "size": 0.0}),
        ("price % (price * size) = 1", {"price": 1e300, "size": 1e300}),
        ("price ^ size = 1", {"price": -8.0, "size": 0.5}),
        ("price ^ size = 1", HUGE),
        ("price / size = 1", {"price": 1.0, "size": 0.0}),
        ("price * 1e308 > 1", HUGE),
        ("price IN (5, 1 / size)", {"price": 5.0, "size": 0.0}),
        ("price IN (1 / size, 5)", {"price": 5.0, "size": 0.0}),
        ("price BETWEEN 10 AND 1 / size", {"price": 5.0, "size": 0.0}),
        ("price BETWEEN 1 / size AND 4", {"price": 5.0, "size": 0.0}),
    ],
)
def test_no_finite_answer_is_counted_and_does_not_hold(text, values):
    for asked in (text, f"NOT ({text})"):
        assert not holds(asked, values)
        tests = [residue.test(values) for clause in compile_filter(SCHEMA, asked) for residue in clause.residue]
        assert tests == [None]


def test_a_missing_attribute_is_no_failure():
    (clause,) = compile_filter(SCHEMA, "price / size = 1")
    assert [residue.test({"price": 1.0}) for residue in clause.residue] == [False]


@pytest.mark.parametrize(
    ("by", "values"),
    [
        ("price / size", {"price": 1.0, "size": 0.0}),
        ("price * 1e308", HUGE),
        ('{"near": {"price": 5}}', HUGE),
        ('{"by": "price / size", "decay": "1 day"}', {"price": 1.0, "size": 0.0}),
    ],
)
def test_a_relevance_without_a_finite_answer_is_nan(by, values):
    assert math.isnan(relevance_of(SCHEMA, by)(values, 0))
    assert relevance_of(SCHEMA, by)({}, 0) is None


def test_an_attribute_of_weight_0_does_not_count():
    assert (
        relevance_of(SCHEMA, '{"near": {"price": 5, "size": 3}, "weights": {"price": 0}}')({"price": 1e200, "size": 1.0}, 0) == -2.0
    )
    assert relevance_of(SCHEMA, '{"near": {"price": 5, "size": 3}, "weights": {"price": 0}}')({"size": 1.0}, 0) is None


def test_a_score_without_a_finite_answer_is_nan():
    score = parse_linear(SCHEMA, "score", "1e200*price + 1e200*size")
    assert math.isnan(score({"price": 1e300, "size": -1e300}))
    assert math.isnan(score({"price": 1e300, "size": 1.0}))
    assert math.isnan(score({"price": 1.0}))
    assert score({"price": 1.0, "size": 2.0}) == 1e200 * 1.0 + 1e200 * 2.0


LEAVES = st.sampled_from(["price", "size", "0", "3", "1e200", "0.5"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "%", "^", "div"]), inner),
    max_leaves=6,
)
EXTREMES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 3.0, 5e-324, 1e-200, 1e200, -1e200, 1.7e308])


@pytest.mark.filterwarnings("ignore::tidings.errors.NeverMatchesWarning")
@given(EXPRESSIONS, EXTREMES, EXTREMES)
def test_arithmetic_is_total(text, price, size):
    values = {"price": price, "size": size}
    try:
        expression = compile_number(SCHEMA, text)
        clauses = compile_filter(SCHEMA, f"{text} > 1 AND price >= 0")
    except FilterError:
        return
    number = expression.value(values)
    assert math.isnan(number) or math.isfinite(number)
    assert any(clause.holds(SCHEMA, values) for clause in clauses) == (number > 1 and price >= 0)
