"""`lazily`: a module that is imported when something of it is first used.

For what is dear to import and not needed by most, so that `import tidings` stays cheap: pyarrow's compute functions alone take a
sixth of it. What is needed by nearly everybody, or is cheap, is imported as ever; numba has its own way (`compiling.kernel`).
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def lazily(module: str) -> Any:
    """Use it as `pc = lazily("pyarrow.compute")`, below the imports."""
    return _Later(module)
