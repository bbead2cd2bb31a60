"""Spark's daemon for the tests: what every worker would import, each for itself, is there before it forks them.

As a module of its own, since Spark starts it by name (`spark.python.daemon.module`). For each task a worker lets Python forget what
it has seen of the path, which then reads the table of contents of PySpark's archive anew, once for each package in it; and it
collects garbage, walking over all that was ever imported. Both cost more than a test's task does. So PySpark comes from where it is
installed, and what is there before the fork is no garbage.
"""

from __future__ import annotations

import gc
import importlib
import runpy
import sys

NEEDED = (
    "numba",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.worker",
    "tidings.spark.parts.match_parts",
    "tidings.spark.state.board_processor",
    "tidings.spark.state.window_processor",
    "tidings.spark.transforms.search",
)

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
    sys.path_importer_cache.clear()
    for name in NEEDED:
        importlib.import_module(name)
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
