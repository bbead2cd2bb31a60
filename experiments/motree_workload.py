"""The workload of the MO-Tree paper's section 6.1, generated.

The paper clusters pick-up points of Shanghai taxis into 10,000 hot areas; subscriptions stand at pick-up points, events in hot
areas. Those traces are not available. What stands in is a clustered generator: a square city of 100 km with twelve
sub-centres that hold four fifths of 10,000 hot areas, the rest scattered; subscriptions stand within about 500 m of a hot area and
events within about 200 m. Everything else is as the paper says: M = 20 attributes of which two are the place, K_e of 15 to 20 of
them in an event, K_s in a subscription, chosen by a Zipf law of exponent alpha; ends of intervals and values uniform;
notification areas are squares whose r is 0.5 to 2 km.

Coordinates are shares of the city's side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.columns.arrays import RANGE, ClauseColumns, EventColumns
from tidings.model.values.schema import Number, Place, Schema

NUMBERS = 18
ATTRIBUTES = NUMBERS + 2
SCHEMA = Schema({**{f"a{i}": Number(0, 1) for i in range(NUMBERS)}, "place": Place(plane=True)})
CITY_KM = 100
_CHUNK = 200_000


@dataclass(frozen=True)
class Workload:
    """Draws subscriptions and events; the same seed gives the same city."""

    predicates: int = 10
    alpha: float = 1.0
    seed: int = 2020

    def hot_areas(self) -> NDArray[np.float64]:
        rng = np.random.default_rng(self.seed)
        centres = rng.random((12, 2)) * 0.6 + 0.2
        near = centres[rng.integers(0, 12, 10_000)] + rng.normal(0, 0.06, (10_000, 2))
        return np.where(rng.random((10_000, 1)) < 0.8, near, rng.random((10_000, 2))).clip(0.01, 0.99)

    def boxes(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Notification areas: squares of side 2 r around a point near a hot area."""
        areas = self.hot_areas()
        point = areas[rng.integers(0, len(areas), count)] + rng.normal(0, 0.005, (count, 2))
        reach = rng.uniform(0.5, 2, (count, 1)) / CITY_KM
        return np.hstack([point - reach, point + reach])

    def clauses(self, count: int, seed: int = 1) -> ClauseColumns:
        rng = np.random.default_rng((self.seed, seed))
        chosen = self.predicates - 2
        dim = np.sort(self._attributes(rng, np.full(count, chosen)), axis=1)[:, :chosen]
        ends = np.sort(rng.random((count, chosen, 2)), axis=2)
        return ClauseColumns(
            owner=np.arange(count, dtype=np.int32),
            pred_start=np.arange(count + 1, dtype=np.int64) * chosen,
            pred_dim=dim.astype(np.int16).ravel(),
            pred_kind=np.full(count * chosen, RANGE, np.uint8),
            pred_lo=ends[..., 0].ravel(),
            pred_hi=ends[..., 1].ravel(),
            pool=np.zeros(0, np.int32),
            box=self.boxes(count, rng),
            word_start=np.zeros(count + 1, np.int64),
            word=np.zeros(0, np.int32),
            residue=np.zeros(count, np.bool_),
        )

    def events(self, count: int, seed: int = 2) -> EventColumns:
        rng = np.random.default_rng((self.seed, seed))
        chosen = self._attributes(rng, rng.integers(15, 21, count) - 2)
        value = np.full((count, NUMBERS + 3), np.nan)
        np.put_along_axis(value, chosen, rng.random(chosen.shape), axis=1)
        value = value[:, [*range(NUMBERS), -1, -1]]
        value[:, -2] = 0.0
        value[:, -1] = np.nan
        areas = self.hot_areas()
        point = areas[rng.integers(0, len(areas), count)] + rng.normal(0, 0.002, (count, 2))
        return EventColumns(value, np.hstack([point, point]), np.zeros(count + 1, np.int64), np.zeros(0, np.int32))

    def _attributes(self, rng: np.random.Generator, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each row its attributes, drawn without replacement by Zipf's law (exponential races); NUMBERS fills the rest."""
        rate = 1 / np.arange(1, NUMBERS + 1) ** self.alpha
        rows = []
        for begin in range(0, len(sizes), _CHUNK):
            part = sizes[begin : begin + _CHUNK]
            order = np.argsort(rng.exponential(size=(len(part), NUMBERS)) / rate, axis=1)
            rows.append(np.where(np.arange(NUMBERS) < part[:, None], order, NUMBERS))
        return np.concatenate(rows)


def dense_clauses(clauses: ClauseColumns) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals, one column an attribute, place last; (-inf, inf) where there is no predicate. For the comparators."""
    lo, hi = np.full((len(clauses), ATTRIBUTES), -np.inf), np.full((len(clauses), ATTRIBUTES), np.inf)
    row = np.repeat(np.arange(len(clauses)), np.diff(clauses.pred_start))
    lo[row, clauses.pred_dim], hi[row, clauses.pred_dim] = clauses.pred_lo, clauses.pred_hi
    lo[:, NUMBERS:], hi[:, NUMBERS:] = clauses.box[:, :2], clauses.box[:, 2:]
    return lo, hi


def dense_events(events: EventColumns) -> NDArray[np.float64]:
    """Values, one column an attribute, place last; NaN where the event has none. For the comparators."""
    return np.hstack([events.value[:, :NUMBERS], events.box[:, :2]])
