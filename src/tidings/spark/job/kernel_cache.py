"""Where executors keep compiled kernels, for `NUMBA_CACHE_LOCATOR_CLASSES`.

Numba names a file's folder by the path of its source, which differs from application to application and from executor to
executor where an archive is unpacked beside each. `tidings._jit` has already named the folder above by a hash of the sources, so
here the file's own name is enough, and when it was unpacked does not matter. `submitting` puts this module at the archive's root
under a name of its own: numba imports it while tidings itself is being imported.
"""

from __future__ import annotations

from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class BySource(UserProvidedCacheLocator):  # type: ignore[misc]
    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        return Path(py_file).stem

    def get_source_stamp(self) -> int:
        return 0
