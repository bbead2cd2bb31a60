"""`@kernel`: the one way numba is used.

Compiled code is cached on disk, releases the GIL and keeps IEEE arithmetic (no fastmath). The cache goes by content: a kernel's
folder is named by a hash of its module, of every project module that it imports, transitively (numba alone would not notice an
edit of a callee in another file), of the versions of Python, numba, llvmlite and NumPy, and of its settings; numba adds the CPU.
So every environment, clone and Spark worker of a user shares one cache, whatever the path of the sources. It lies under
`NUMBA_CACHE_DIR` if that is set, else under the user's cache folder, else (no writable home, as in many containers) under the
temporary folder. Files are written under another name and renamed, so many processes may fill it at once.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import UserProvidedCacheLocator

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT = re.compile(
    r"^\s*(?:from|import)\s+((?:tidings|experiments|benchmarks|tests)[\w.]*)(?:\s+import\s+(?:\(([^)]*)\)|([^#\n]*)))?",
    re.MULTILINE,
)
_SETTINGS = repr(
    (sys.version_info[:3], numba.__version__, llvmlite.__version__, np.__version__, config.BOUNDSCHECK, config.OPT, config.DEBUG)
)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")


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


class BySource(UserProvidedCacheLocator):  # type: ignore[misc]
    """Numba would name the folder by the path of the source; `cache_folder` has named it by what is in it."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        return Path(py_file).stem


def _compiled(function: Function, **options: bool) -> Function:
    before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
    config.CACHE_DIR = str(cache_folder(function.__module__))
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{BySource.__name__}"
    try:
        compiled: Function = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before
    return compiled


@cache
def cache_folder(module: str) -> Path:
    digest = hashlib.sha256(_SETTINGS.encode())
    for source in sorted(_sources(module)):
        digest.update(source.encode())
    return _cache_root() / digest.hexdigest()[:16]


def _sources(module: str) -> set[str]:
    """The source texts of `module` and of all project modules it imports, directly or not."""
    seen: dict[str, str] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        path = _path(name)
        if name in seen or path is None:
            continue
        seen[name] = path.read_text()
        for parent, several, one in _IMPORT.findall(seen[name]):
            todo += [parent, *(f"{parent}.{part}" for part in _NAME.findall(several or one))]
    return set(seen.values())


def _path(module: str) -> Path | None:
    """The file of a project module, found beside this package or beside an already imported root; None for anything else."""
    root, _, rest = module.partition(".")
    folder = Path(__file__).parent if root == "tidings" else _root_of(root)
    if folder is None or not rest:
        return None
    place = folder.joinpath(*rest.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _root_of(root: str) -> Path | None:
    package = sys.modules.get(root)
    return Path(next(iter(package.__path__))) if package is not None and package.__path__ else None


@cache
def _cache_root() -> Path:
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(wanted) if wanted else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidings"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            return home
    except OSError:
        return Path(tempfile.gettempdir()) / f"tidings-{os.getuid()}"
