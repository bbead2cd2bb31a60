"""Workloads of range-topk, section V: objects, watchers and updates, synthetic or from real stock prices."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.metadata import distribution

import numpy as np

from tidings.index.points.objects import ObjectIndex
from tidings.index.points.watchers import WatchIndex

CLUSTERS = 10


@dataclass
class Workload:
    """Objects (x, y), watchers (m x 2) and updates (object numbers and their new y)."""

    x: np.ndarray
    y: np.ndarray
    points: np.ndarray
    numbers: np.ndarray
    new_y: np.ndarray

    def objects(self):
        index = ObjectIndex(len(self.x))
        index.insert_many(np.arange(len(self.x)), self.x, self.y)
        return index

    def watchers(self):
        return WatchIndex.build(np.arange(len(self.points), dtype=np.int32), self.points)

    @property
    def updates(self):
        return self.numbers, self.x[self.numbers], self.new_y


def object_places(rng, count, kind):
    if kind == "uniform":
        return rng.random(count)
    width = 1 / (CLUSTERS + 1)
    centre = width * rng.integers(1, CLUSTERS + 1, count)
    return centre + rng.normal(0, width / 8, count)


def watcher_points(rng, count, kind, spread=0.2):
    """(l, r) with l <= r. `correlated` ones lie in the clusters of the clustered objects, `anti-correlated` ones between them."""
    if kind == "uniform":
        return np.sort(rng.random((count, 2)), 1)
    if kind == "clustered":
        centre = np.sort(rng.random((CLUSTERS, 2)), 1)[rng.integers(0, CLUSTERS, count)]
        return np.sort(centre + rng.normal(0, spread / 4, (count, 2)), 1)
    width = 1 / (CLUSTERS + 1)
    shift, clusters = (0.0, CLUSTERS) if kind == "correlated" else (width / 2, CLUSTERS - 1)
    centre = width * rng.integers(1, clusters + 1, count) + shift
    return np.sort(centre[:, None] + rng.normal(0, width / 8, (count, 2)), 1)


def random_updates(rng, y, count, volatility=None):
    """Objects at random; y rises or falls with even odds to a uniform place, or by a Gaussian step of `volatility` / 8."""
    y = y.copy()
    numbers, new = rng.integers(0, len(y), count), np.empty(count)
    for i, number in enumerate(numbers):
        if volatility is not None:
            new[i] = np.clip(y[number] + rng.normal(0, volatility / 8), 0, 1)
        elif rng.random() < 0.5:
            new[i] = y[number] * rng.random()
        else:
            new[i] = y[number] + (1 - y[number]) * rng.random()
        y[number] = new[i]
    return numbers, new


def synthetic(watchers, events, objects=10_000, object_kind="uniform", watcher_kind="uniform", volatility=None, seed=8):
    """The same objects and updates for any number and kind of watchers."""
    rng = np.random.default_rng(seed)
    x, y = object_places(rng, objects, object_kind), rng.random(objects)
    updates = random_updates(rng, y, events, volatility)
    return Workload(x, y, watcher_points(rng, watchers, watcher_kind), *updates)


def stocks(watchers, days, seed=8, warm=250):
    """Daily moves of real stocks. y is the price over its mean of the last `warm` days, in place of the price-to-earnings ratio; x,
    a constant of the stock, is the volatility over the first `warm` days, in place of the recommendation."""
    prices = stock_prices()
    x = np.array([np.diff(np.log(p[:warm])).std() for p in prices])
    ratio = [np.array([p[t] / p[t - warm : t].mean() for t in range(warm, warm + days)]) for p in prices]
    numbers = np.tile(np.arange(len(prices)), days - 1)
    new = np.array([[r[day] for r in ratio] for day in range(1, days)]).ravel()
    rng = np.random.default_rng(seed)
    points = np.sort(rng.uniform(x.min(), x.max(), (watchers, 2)), 1)
    return Workload(x, np.array([r[0] for r in ratio]), points, numbers, new)


def stock_prices():
    """Prices that the PyPI package universal-portfolios carries: stocks of Toronto, New York (two periods), S&P 500, Dow Jones."""
    folder = distribution("universal-portfolios").locate_file("universal/data")
    series = []
    for name in ("tse", "nyse_o", "nyse_n", "sp500", "djia"):
        with open(folder / f"{name}.csv", newline="") as file:
            rows = list(csv.reader(file))[1:]
        table = np.array([[cell or "nan" for cell in row] for row in rows], float)
        series += [
            column for column in table.T if len(column) > 320 and np.isfinite(column[:320]).all() and (column[:320] > 0).all()
        ]
    return series
