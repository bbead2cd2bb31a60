"""What is pinned is what a kernel opens: the same arrays, compiled and in plain Python, however tuples are nested."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.registry import cpu_target

from tidings._jit import kernel
from tidings.compiling.content_cache import _reached
from tidings.compiling.dispatching import TWINS, size
from tidings.compiling.pinned import Pinned, opened, words


class Inner(NamedTuple):
    flat: np.ndarray
    count: int
    grid: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    empty: np.ndarray
    items: np.ndarray
    more: tuple[int, np.ndarray]


ITEM = np.dtype([("at", "i4"), ("value", "f8")], align=True)


def outer() -> Outer:
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    grid.flags.writeable = False
    return Outer(Inner(np.arange(5, dtype=np.int16), 7, grid), np.empty((4, 0)), np.zeros(2, ITEM), (-3, np.arange(6)[::2]))


@kernel
def read(pinned, at):
    inner, empty, _, more = opened(pinned)
    total = inner.flat[at] + inner.count * inner.grid[1, at] + empty.shape[0] * 1000 + more[0] + more[1][1]
    return total, inner.grid.shape, empty.size, more[1].size


@kernel
def write(pinned, at):
    _, _, items, more = opened(pinned)
    items[at].value += 2.5
    more[1][2] = at
    return items.size


@kernel
def handed_on(pinned):
    return opened(pinned).inner.grid[1:].copy()


WAYS = pytest.mark.parametrize("way", [lambda asked: asked, lambda asked: TWINS.entry(asked.function)], ids=["kernel", "plain"])


@WAYS
def test_arrays_are_read_where_they_lie(way):
    assert way(read)(Pinned(outer()), 2) == (2 + 7 * 6.0 + 4000 - 3 + 2, (3, 4), 0, 3)


@WAYS
def test_arrays_are_written_where_they_lie(way):
    value = outer()
    pinned = Pinned(value)
    assert [way(write)(pinned, 1) for _ in range(2)] == [2, 2]
    assert value.items["value"].tolist() == [0.0, 5.0]
    assert value.more[1].tolist() == [0, 2, 1]


@WAYS
def test_what_a_kernel_gives_outlives_what_was_pinned(way):
    given = way(handed_on)(Pinned(outer()))
    assert given.tolist() == [[4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]


def test_words_are_as_many_as_numba_lays_out():
    value = outer()
    inner = Pinned(value)._numba_type_.inner
    context = cpu_target.target_context
    assert context.get_abi_sizeof(context.get_value_type(inner)) == 8 * len(words(value))


def test_a_type_comes_back_from_the_cache_as_itself():
    kind = Pinned(outer())._numba_type_
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert Pinned(outer())._numba_type_ is kind


def test_how_arguments_are_pinned_is_part_of_what_a_kernel_says():
    assert "tidings.compiling.pinned_code" in _reached("tidings.index.blocks.bitmap_match")
    assert "tidings.compiling.dispatching" not in _reached("tidings.index.blocks.bitmap_match")


def test_what_is_pinned_counts_as_it_would_by_itself():
    assert size((Pinned(outer()),)) == size((outer(),)) == 5 + 12 + 0 + 2 + 3


def test_nothing_else_is_pinned():
    with pytest.raises(AssertionError, match="arrays, integers and tuples"):
        words((True,))
