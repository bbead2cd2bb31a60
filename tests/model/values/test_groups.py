"""Groups: one number for one value, in columns and alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.values.groups import group_of, groups_of_numbers, groups_of_texts

NUMBERS = st.floats(allow_nan=False)


@given(st.lists(NUMBERS))
def test_numbers_are_the_same_group_in_a_column_and_alone(values):
    assert groups_of_numbers(np.array([*values, np.nan])).tolist() == [*map(group_of, values), 0]


@given(st.lists(st.one_of(NUMBERS, st.text()), unique_by=lambda value: (type(value), value)))
def test_different_values_are_different_groups_and_none_is_0(values):
    assert len({group_of(value) for value in values} | {0}) == len(values) + 1


def test_equal_values_are_one_group():
    assert group_of(0.0) == group_of(-0.0) == group_of(0) == group_of(False)
    assert group_of("a") == groups_of_texts(["b", "a"])[1]
    assert group_of(None) == 0
