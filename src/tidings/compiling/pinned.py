"""Arguments that a kernel is given again and again, handed over as one address.

To hand an array from Python to compiled code costs about 0.2 us, and a structure has thirty: for a single event that is more than
the answer. A `Pinned` is a (named) tuple of arrays and integers, tuples of these among them, together with what numba would make of
it: one array of words, which `opened` loads in a kernel.

| in `words`     | meaning                                                                                              |
|----------------|------------------------------------------------------------------------------------------------------|
| of an array    | no owner, no parent (two words of 0), size, bytes an element, address, then the shape and the strides |
| of an integer  | itself                                                                                               |

Invariant: the tuple holds the arrays, and nobody resizes one: an address means the same for as long as its `Pinned` is held, which
a caller does until the kernel returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import numpy as np

from tidings.compiling.kernel import Instruction
from tidings.compiling.plain import taken

Value = TypeVar("Value", bound=tuple[Any, ...])
Function = TypeVar("Function", bound=Callable[..., Any])
_CODE = "tidings.compiling.pinned_code"


class Pinned(Generic[Value]):
    __slots__ = ("_numba_type_", "_words", "address", "value")

    def __init__(self, value: Value) -> None:
        from tidings.compiling.pinned_code import type_of

        self.value = value
        self._numba_type_ = type_of(value)
        self._words = np.array(words(value), np.int64)
        self.address = self._words.ctypes.data


def words(value: Any) -> list[int]:
    """As numba lays a value out in memory."""
    if isinstance(value, np.ndarray):
        return [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
    if isinstance(value, tuple):
        return [word for part in value for word in words(part)]
    assert type(value) is int, "arrays, integers and tuples of these are pinned"
    return [value]


def _instructed(function: Function) -> Function:
    return cast(Function, Instruction(cast(Any, function), f"{_CODE}:opened"))


@_instructed
def opened(pinned: Pinned[Value]) -> Value:
    """For kernels only: the tuple that was pinned, whose arrays are borrowed."""
    return cast(Value, taken(pinned.value))
