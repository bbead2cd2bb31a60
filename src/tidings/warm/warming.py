"""Compile what a rehearsal wanted, with one process a core, into the user's cache or, for a baseline CPU, into a folder to carry.

Each kernel is saved as it is made, so a run that is stopped goes on where it was, and several at once share the work.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidings.compiling.beside import Wanted
from tidings.compiling.content_cache import BASELINES, cache_root
from tidings.errors import StorageError
from tidings.warm.rehearsal import rehearse


def warm(console: Console, processes: int | None = None) -> int:
    """Fill this process's cache; how many kernels it has now."""
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bar, console=console, transient=True) as progress:
        task = progress.add_task("rehearsing", total=None)
        wanted = rehearse()
        progress.update(task, description="compiling", total=len(wanted))
        # A module's kernels share what they call.
        modules = [list(ones) for _, ones in groupby(wanted, lambda one: one.module)]
        with ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn")) as pool:
            work = [pool.submit(compile_all, ones) for ones in sorted(modules, key=len, reverse=True)]
            for done in as_completed(work):
                progress.advance(task, done.result())
    console.print(f"{len(wanted)} kernels are compiled and kept in {cache_root()}", highlight=False)
    return len(wanted)


def compile_all(wanted: list[Wanted]) -> int:
    for one in wanted:
        one.compile()
    return len(wanted)


def carry(folder: Path) -> None:
    """Compile for this machine's baseline CPU into `folder`, which a wheel or an archive takes along (`content_cache.CARRIED`)."""
    if platform.machine() not in BASELINES:
        raise StorageError(f"there is no baseline CPU for {platform.machine()}: kernels can be carried for {', '.join(BASELINES)}")
    baseline, _ = BASELINES[platform.machine()]
    into = folder / baseline
    settings = {"NUMBA_CACHE_DIR": str(into.absolute()), "NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": ""}
    # Numba reads them once, when it is imported: another process.
    subprocess.run([sys.executable, "-m", "tidings", "warm"], env={**os.environ, **settings}, check=True)
    for lock in into.rglob("lock"):
        lock.unlink()
