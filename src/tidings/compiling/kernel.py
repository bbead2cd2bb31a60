"""What `@kernel` makes of a function: nothing, until it is called.

The first call imports numba and takes one of three ways, by the types of its arguments: compiled code that the cache has; if there
is none, plain Python where little is asked (`plain`), while a process beside compiles (`beside`), until the cache has it; and where
much is asked, compiling at once, which is waited for. From then on numba's own dispatcher is called, with nothing between.
`TIDINGS_KERNELS=compiled` never takes the second way, `plain` no other; the answers are the same.
"""

from __future__ import annotations

from functools import partial, update_wrapper
from threading import RLock
from types import FunctionType
from typing import Any, cast

_MAKING = RLock()


class Kernel(partial[Any]):
    """A function that is compiled when it is called; in the source of another kernel, numba sees its dispatcher."""

    options: dict[str, bool]
    function: Any
    _dispatcher: Any

    def __new__(cls, function: FunctionType, options: dict[str, bool]) -> Kernel:
        kernel: Kernel = super().__new__(cls, lambda *arguments: kernel.dispatcher(*arguments))
        update_wrapper(kernel, function)
        kernel.function, kernel.options, kernel._dispatcher = function, options, None
        return kernel

    @property
    def dispatcher(self) -> Any:
        """Numba's. It is what the kernel calls from now on."""
        with _MAKING:
            if self._dispatcher is None:
                from tidings.compiling.dispatching import dispatcher_of

                self._dispatcher = dispatcher_of(self)
                cast(Any, self).__setstate__((self._dispatcher, (), {}, vars(self)))
        return self._dispatcher

    def __reduce__(self) -> str:
        return str(self.function.__qualname__)


class Instruction:
    """A function that numba compiles to what `code`, an intrinsic as `module:name`, emits. Its own source is what that means."""

    def __init__(self, function: FunctionType, code: str) -> None:
        update_wrapper(self, function)
        self.function: Any = function
        self.code = code

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)
