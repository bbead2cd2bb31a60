"""What a worker's Python remembers of PySpark's own archive, let go so that no task reads it again.

A task begins with `importlib.invalidate_caches()`: files may have been added. Each importer of a zip file then reads that file's
whole directory again, and there is one for each of PySpark's packages that was imported from `pyspark.zip`: on Python 3.11 a third
to a half of a worker's time with micro-batches of a second. That archive does not change while Spark runs. Without its importers
the next task has nothing to read; an import that needs one makes it anew, from a directory that is kept.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter

ARCHIVES = ("pyspark.zip", "-src.zip")
"""PySpark's and, as `py4j-0.10.9.9-src.zip`, Py4J's."""


def let_go_of_archives() -> None:
    """To be called in every task, after it has begun."""
    kept = list(sys.path_importer_cache.items())
    for path, importer in kept:
        if isinstance(importer, zipimporter) and importer.archive.endswith(ARCHIVES):
            sys.path_importer_cache.pop(path, None)
