"""What every task costs a worker of Spark's, whatever it does, done once instead.

A task begins with `importlib.invalidate_caches()`: files may have been added. Each importer of a zip file then reads that file's
whole directory again, and there is one for each of PySpark's packages that was imported from `pyspark.zip`: much of a worker's
time where micro-batches are short. That archive does not change while Spark runs. Without its importers
the next task has nothing to read; an import that needs one makes it anew, from a directory that is kept.

A task ends with `gc.collect()`, which looks at every object that the worker has, and those of NumPy, pandas, Numba and the kernels
are many. What is there when some early tasks begin stays until the worker ends, and is
frozen: `gc` passes it over from then on.
"""

from __future__ import annotations

import gc
import sys
from zipimport import zipimporter

ARCHIVES = ("pyspark.zip", "-src.zip")
"""PySpark's and, as `py4j-0.10.9.9-src.zip`, Py4J's."""
FROZEN_AT = (1, 2, 10)
"""The tasks of a worker: what the first one imports and loads is there when the second begins."""

_tasks = 0


def begin_task() -> None:
    """To be called in every task, after it has begun."""
    global _tasks
    _tasks += 1
    if _tasks in FROZEN_AT:
        gc.freeze()
    let_go_of_archives()


def let_go_of_archives() -> None:
    known = list(sys.path_importer_cache.items())
    for path, importer in known:
        if isinstance(importer, zipimporter) and importer.archive.endswith(ARCHIVES):
            sys.path_importer_cache.pop(path, None)
