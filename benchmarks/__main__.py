"""`python -m benchmarks [name ...]`: run the named benchmarks, all if none is named."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "compile",
    "kernels",
    "engine",
    "publish",
    "memory",
    "ranked",
    "motree",
    "rttree",
    "topkw",
    "window_kinds",
    "undo",
    "everyday",
    "range_topk",
    "range_topk_boards",
    "spark",
    "spark_notify",
)

if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
