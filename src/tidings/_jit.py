"""`@kernel`: the one way numba is used.

A kernel is compiled when it is first called, for the types it is called with; compiled code is cached on disk, releases the GIL and
keeps IEEE arithmetic (no fastmath). How a call is answered while nothing is compiled yet: `compiling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from tidings.compiling.kernel import Instruction, Kernel

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on first call for the types it is called with."""
    # Said, because an option left out is the caller's, and the caller may be an `inlined` one.
    return _compiled(function, _nrt=True)


def inlined(function: Function) -> Function:
    """A kernel that is copied into the kernels that call it, and neither makes nor returns an array.

    Arrays are passed by value, a tuple of twenty is 140 words a call; and where memory may be allocated, numba counts a reference
    atomically each time an array is taken out of a tuple. In an inner loop both cost more than the work.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def borrowing_kernel(function: Function) -> Function:
    """A kernel that neither makes nor returns an array: it only borrows its arguments and does not count references to them.

    Counting costs an atomic operation for every array of every tuple that is handed to a function, more than many a small one does.
    """
    return _compiled(function, _nrt=False)


def instruction(code: str) -> Callable[[Function], Function]:
    """For kernels only: `module:name` of the intrinsic that is compiled in place of a call. The function says what that means."""

    def instructed(function: Function) -> Function:
        return cast(Function, Instruction(cast(Any, function), code))

    return instructed


def _compiled(function: Function, **options: bool) -> Function:
    return cast(Function, Kernel(cast(Any, function), options))
