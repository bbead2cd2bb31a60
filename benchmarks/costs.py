"""What something costs on Spark: CPU seconds of the driver, the JVM and its Python workers, and wall time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psutil


class Cost(NamedTuple):
    wall: float
    cpu: float


def cost_of(work: Callable[[], Any]) -> Cost:
    """Of all that works: this driver, the JVM, and the Python workers that it has."""
    before, begun = spent(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - begun, spent() - before)


def spent() -> float:
    """CPU seconds of this process, of all below it, and of those of them that have ended."""
    below = psutil.Process().children(recursive=True)
    return time.process_time() + sum(map(seconds_of, below))


def seconds_of(process: psutil.Process) -> float:
    """Its seconds; a worker that has ended is its parent's."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def least(work: Callable[[], Any], repeats: int = 5) -> Cost:
    return min((cost_of(work) for _ in range(repeats)), key=lambda cost: cost.cpu)
