"""The plain way: a kernel's own source as Python runs it, with the arithmetic that numba would compile.

Nothing is written twice: a kernel is a Python function on arrays, and what it answers is what its source says. Three things differ
between the two, and each is settled here, once:

| in a kernel                             | numba               | NumPy                    | here                           |
|-----------------------------------------|---------------------|--------------------------|--------------------------------|
| an element of an array of narrow integers | has 64 bits        | keeps its type and wraps | `PlainArray` gives a Python int |
| a record of a structured array          | fields are attributes | fields are keys         | `Record`                       |
| `np.uint32(-1)` and the like            | wraps               | raises                   | `Wrapped`                      |

An integer beyond 64 bits, which numba would wrap, has no place in a kernel; where wrapping is meant, kernels say `np.uint64`, which
wraps both ways. The state machines of structures, windows, boards and the topic are run both ways (`TIDINGS_KERNELS=plain`).
A kernel runs some hundred times slower so: right for a few thousand rows, and only for those (`dispatching.SMALL`).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

_NARROW = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)


class Record:
    """One record of a structured array: fields are read and written where they lie."""

    __slots__ = ("_fields",)

    def __init__(self, fields: np.void) -> None:
        object.__setattr__(self, "_fields", fields)

    def __getattr__(self, name: str) -> Any:
        return seen(self._fields[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._fields[name] = value

    __getitem__ = __getattr__
    __setitem__ = __setattr__


class PlainArray(np.ndarray[Any, Any]):
    """The array as numba would read it: elements are as wide as a register."""

    def __getitem__(self, key: Any) -> Any:
        return seen(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value._fields if type(value) is Record else value)

    def __getattr__(self, name: str) -> Any:
        if self.dtype.names and name in self.dtype.names:
            return self[name]
        raise AttributeError(name)


_SEEN: dict[type, Callable[[Any], Any]] = {**dict.fromkeys(_NARROW, int), np.void: Record}


def seen(value: Any) -> Any:
    widen = _SEEN.get(type(value))
    return value if widen is None else widen(value)


def taken(value: Any) -> Any:
    """An argument as a plain kernel takes it."""
    if isinstance(value, np.ndarray):
        return value.view(PlainArray)
    if isinstance(value, tuple):
        return _rebuilt(value, [taken(part) for part in value])
    return np.float64(value) if type(value) is float else seen(value)


def given(value: Any) -> Any:
    """A result as a compiled kernel would give it."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return _rebuilt(value, [given(part) for part in value])
    return value.item() if isinstance(value, np.generic) else value


def _rebuilt(like: tuple[Any, ...], parts: list[Any]) -> Any:
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)


class Wrapped:
    """A cast to an integer type that wraps; an unsigned one stays unsigned, and is as wide as a register.

    The class stands for its dtype too, as NumPy's own does.
    """

    dtype: np.dtype[Any]

    def __new__(cls, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.astype(cls.dtype)
        bits = 8 * cls.dtype.itemsize
        number = int(value) & ((1 << bits) - 1)
        if cls.dtype.kind == "u":
            return np.uint64(number)
        return number - (1 << bits) if number >> (bits - 1) else number


class Numbers:
    """`np`, with casts that wrap and functions whose arrays are plain."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, type) and issubclass(value, np.integer):
            value = type(name, (Wrapped,), {"dtype": np.dtype(value)})
        elif callable(value) and not isinstance(value, type):
            value = _function(value)
        setattr(self, name, value)
        return value


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    def plain(*arguments: Any, **named: Any) -> Any:
        value = function(*arguments, **named)
        return value.view(PlainArray) if isinstance(value, np.ndarray) else seen(value)

    return plain


class Twins:
    """The plain twins of kernels: each function again, with the twins of the kernels that it calls and `Numbers` for `np`."""

    def __init__(self, source: Callable[[Any], types.FunctionType | None]) -> None:
        """`source` gives the function of a kernel, and None for whatever else a module holds."""
        self._source = source
        self._numbers = Numbers()
        self._globals: dict[int, dict[str, Any]] = {}
        self._twins: dict[types.FunctionType, types.FunctionType] = {}

    def entry(self, function: types.FunctionType) -> Callable[..., Any]:
        """Called as the compiled kernel would be."""
        twin = self._twin(function)

        def plain(*arguments: Any) -> Any:
            with np.errstate(all="ignore"):
                return given(twin(*[taken(argument) for argument in arguments]))

        return plain

    def _twin(self, function: types.FunctionType) -> types.FunctionType:
        twin = self._twins.get(function)
        if twin is None:
            cells = tuple(types.CellType(self._replaced(cell.cell_contents)) for cell in function.__closure__ or ())
            twin = types.FunctionType(
                function.__code__, self._globals_of(function), function.__name__, function.__defaults__, cells or None
            )
            self._twins[function] = twin
        return twin

    def _globals_of(self, function: types.FunctionType) -> dict[str, Any]:
        names = function.__globals__
        twins = self._globals.get(id(names))
        if twins is None:
            self._globals[id(names)] = twins = dict(names)
            twins.update({name: self._replaced(value) for name, value in names.items()})
        return twins

    def _replaced(self, value: Any) -> Any:
        if value is np:
            return self._numbers
        if isinstance(value, np.ndarray):
            return value.view(PlainArray)
        function = self._source(value)
        return seen(value) if function is None else self._twin(function)
