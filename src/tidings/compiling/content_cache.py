"""Where compiled kernels are kept: by content.

A kernel's folder is named by a hash of its module, of every project module that it imports, transitively (numba alone would not
notice an edit of a callee in another file), of the versions of Python, numba, llvmlite and NumPy, and of numba's settings; numba
adds the CPU. So every environment, clone and Spark worker of a user shares one cache, whatever the path of the sources. It lies
under `NUMBA_CACHE_DIR` if that is set, else under the user's cache folder, else (no writable home, as in many containers) under the
temporary folder. Files are written under another name and renamed, and who compiles holds the folder's lock (`filling`), so many
processes may fill it at once and no two compile the same.

A wheel may carry a cache of its own, compiled for a baseline CPU (`CARRIED`, `make wheel`): it is read where the user's has
nothing, if versions fit, which its names say, and the CPU has what the baseline needs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator

CARRIED = Path(__file__).with_name("carried")
"""What a wheel brings, in a folder a baseline."""
BASELINES = {
    "x86_64": ("x86-64-v3", ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
    "aarch64": ("generic", ("neon",)),
    "arm64": ("generic", ("neon",)),
}
"""By machine: LLVM's name of the baseline, and what a CPU must have to run code for it."""

_IMPORT = re.compile(
    r"^\s*(?:from|import)\s+((?:tidings|experiments|benchmarks|tests)[\w.]*)(?:\s+import\s+(?:\(([^)]*)\)|([^#\n]*)))?",
    re.MULTILINE,
)
_SETTINGS = repr(
    (sys.version_info[:3], numba.__version__, llvmlite.__version__, np.__version__, config.BOUNDSCHECK, config.OPT, config.DEBUG)
)
_CODE = re.compile(r'"(tidings\.[\w.]+)"')
"""A module that is named in a string, as that of an instruction's code."""
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_NO_CODE = re.compile(r"tidings\.compiling(?!\.pinned)")
"""What compiles kernels is no part of what they say; how arguments are pinned is."""


class ByContent(UserProvidedCacheLocator):  # type: ignore[misc]
    def __init__(self, function: FunctionType, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(cache_root() / content_name(function.__module__))

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> ByContent:
        made = cls(function, file)
        made.ensure_cache_path()
        return made


class _Code(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (ByContent,)


class ContentCache(FunctionCache):  # type: ignore[misc]
    """One kernel's compiled code, by signature."""

    _impl_class = _Code

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        folder, stamp = str(carried_folder() / content_name(function.__module__)), self._impl.locator.get_source_stamp()
        self._carried = IndexDataCacheFile(folder, self._impl.filename_base, stamp)

    def has(self, signature: tuple[Any, ...], target: Any) -> bool:
        key = self._index_key(signature, target.codegen())
        return key in self._cache_file._load_index() or self._carried_key(key) is not None

    def _load_overload(self, signature: tuple[Any, ...], target: Any) -> Any:
        own = super()._load_overload(signature, target)
        if own is not None:
            return own
        key = self._carried_key(self._index_key(signature, target.codegen()))
        return None if key is None else self._impl.rebuild(target, self._carried.load(key))

    def _carried_key(self, wanted: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The entry of the same signature and code: what it was compiled for, the folder's name has settled."""
        return next((key for key in self._carried._load_index() if key[0] == wanted[0] and key[2:] == wanted[2:]), None)


@contextmanager
def filling(module: str) -> Iterator[None]:
    """Nobody else compiles what stands in this module. What needs another module's kernels finds or makes them without its lock."""
    folder = cache_root() / content_name(module)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def carried_folder() -> Path:
    """What this CPU can run of what a wheel brings; it need not exist."""
    baseline, features = BASELINES.get(platform.machine(), ("none", ()))
    own = llvmlite.binding.get_host_cpu_features()
    return CARRIED / (baseline if all(own.get(feature) for feature in features) else "none")


@cache
def content_name(module: str) -> str:
    digest = hashlib.sha256(_SETTINGS.encode())
    for text in sorted({_read(name)[0] for name in _reached(module)}):
        digest.update(text.encode())
    return f"{digest.hexdigest()[:16]}/{module.rpartition('.')[2]}"


def _reached(module: str) -> set[str]:
    """`module` and all project modules that it imports, directly or not."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in seen and not _NO_CODE.match(name) and _path(name) is not None:
            seen.add(name)
            todo += _read(name)[1]
    return seen


@cache
def _read(module: str) -> tuple[str, list[str]]:
    """A module's source, and what it may import."""
    path = _path(module)
    assert path is not None
    text = path.read_text()
    names = _CODE.findall(text)
    for parent, several, one in _IMPORT.findall(text):
        names += [parent, *(f"{parent}.{part}" for part in _NAME.findall(several or one))]
    return text, names


@cache
def _path(module: str) -> Path | None:
    """The file of a project module, found beside this package or beside an already imported root; None for anything else."""
    root, _, rest = module.partition(".")
    folder = Path(__file__).parent.parent if root == "tidings" else _root_of(root)
    if folder is None or not rest:
        return None
    place = folder.joinpath(*rest.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _root_of(root: str) -> Path | None:
    package = sys.modules.get(root)
    return Path(next(iter(package.__path__))) if package is not None and package.__path__ else None


@cache
def cache_root() -> Path:
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(wanted) if wanted else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            return home
    except OSError:
        return Path(tempfile.gettempdir()) / f"tidings-{os.getuid()}"
