"""Numba's dispatchers, and which way a call takes that they have no code for. Imported when a kernel is first called."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl

from tidings.compiling import beside
from tidings.compiling.beside import Wanted
from tidings.compiling.content_cache import ContentCache, filling
from tidings.compiling.kernel import Instruction, Kernel
from tidings.compiling.pinned import Pinned
from tidings.compiling.plain import Twins

SMALL = 1 << 19
"""Elements of all arrays of a call for which plain Python may answer; scratch counts, of which similarity has 200,000."""
LOOK_AGAIN = 0.2
"""Seconds between two looks whether the cache has by now what a call wants."""
PATIENCE = 300.0
"""Seconds after which what was asked of the processes beside is compiled here."""

WAY = os.environ.get("TIDINGS_KERNELS", "")
_rehearsals: list[dict[Wanted, None]] = []


@contextmanager
def rehearsing() -> Iterator[dict[Wanted, None]]:
    """Plain Python answers, and what is given fills with what would have been compiled."""
    wanted: dict[Wanted, None] = {}
    _rehearsals.append(wanted)
    yield wanted
    _rehearsals.remove(wanted)


def _source(value: Any) -> Any:
    return value.function if isinstance(value, Kernel | Instruction) else None


TWINS = Twins(_source)


def dispatcher_of(kernel: Kernel) -> Any:
    dispatcher = numba.njit(nogil=True, error_model="numpy", **kernel.options)(kernel.function)
    dispatcher._cache = ContentCache(kernel.function)
    # Numba's dispatcher asks this for code that it lacks, and calls what it is given.
    dispatcher._compile_for_args = Choice(kernel, dispatcher, dispatcher._compile_for_args)
    return dispatcher


class Choice:
    """Which way a call takes for which there is no code in this process."""

    def __init__(self, kernel: Kernel, dispatcher: Any, compiled: Callable[..., Any]) -> None:
        self._kernel, self._dispatcher, self._compiled = kernel, dispatcher, compiled
        self._plain: Callable[..., Any] | None = None
        self._asked: dict[tuple[Any, ...], float] = {}
        self._looked: dict[tuple[Any, ...], float] = {}

    def __call__(self, *arguments: Any) -> Any:
        if WAY == "plain":
            return self._in_plain()
        signature = tuple(self._dispatcher.typeof_pyval(argument) for argument in arguments)
        if _rehearsals:
            _rehearsals[-1][Wanted(self._kernel.__module__, self._kernel.function.__qualname__, signature)] = None
            return self._in_plain()
        if WAY == "compiled":
            return self._here(*arguments)
        now = time.monotonic()
        if now - self._looked.get(signature, -np.inf) < LOOK_AGAIN:
            return self._in_plain()
        if self._dispatcher._cache.has(signature, self._dispatcher.targetctx) or not self._may_wait(signature, arguments, now):
            return self._here(*arguments)
        self._looked[signature] = now
        return self._in_plain()

    def _may_wait(self, signature: tuple[Any, ...], arguments: tuple[Any, ...], now: float) -> bool:
        if size(arguments) > SMALL:
            return False
        if signature not in self._asked:
            self._asked[signature] = now
            return beside.ask(Wanted(self._kernel.__module__, self._kernel.function.__qualname__, signature))
        return now - self._asked[signature] < PATIENCE

    def _here(self, *arguments: Any) -> Any:
        with filling(self._kernel.__module__):
            return self._compiled(*arguments)

    def _in_plain(self) -> Callable[..., Any]:
        if self._plain is None:
            self._plain = TWINS.entry(self._kernel.function)
        return self._plain


def size(arguments: tuple[Any, ...]) -> int:
    """Elements of all arrays."""
    total = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            total += argument.size
        elif isinstance(argument, tuple):
            total += size(argument)
        elif isinstance(argument, Pinned):
            total += size(argument.value)
    return total


@typeof_impl.register(Kernel)  # type: ignore[untyped-decorator]
def _typeof_kernel(value: Kernel, context: Any) -> Any:
    return types.Dispatcher(value.dispatcher)


@typeof_impl.register(Instruction)  # type: ignore[untyped-decorator]
def _typeof_instruction(value: Instruction, context: Any) -> Any:
    module, _, name = value.code.partition(":")
    code = getattr(importlib.import_module(module), name)
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(code)
