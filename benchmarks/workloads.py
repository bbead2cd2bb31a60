"""Named workloads, frozen: the same name and size always give the same tables, so results of different days can be compared.

| name           | subscriptions                                                        | events                              |
|----------------|----------------------------------------------------------------------|-------------------------------------|
| `ranges-place` | 10 predicates of 20 attributes, two of them a 0.5-2 km square in a 100 km city | a point, 13-18 attributes |
| `ranges`       | the same without a place                                             | 15-20 attributes                    |
| `words-box`    | 1-5 words of 100,000 (Zipf) and a box                                | a point and 6-20 words              |
| `boxes`        | a box and a random score; `side` sets how many match                 | a point                             |
| `categories`   | a value of 200 on each of three attributes                            | all three                           |
| `mixed`        | ranges on 3 attributes, a category, a box and 1-2 words, each in most | all of them                        |

Attributes of subscriptions are drawn by Zipf (popular ones more often), intervals are two sorted uniform draws, as in the MO-Tree
paper; places cluster in cities, as in the R^t paper. Coordinates are degrees with seven decimals, about a centimetre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import tidings as td

ATTRIBUTES = 20
WORDS = 100_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Workload:
    name: str
    schema: td.Schema
    subscriptions: pa.Table
    events: pa.Table


def ranges_place(n: int, events: int, predicates: int = 10, scale: float = 1.0) -> Workload:
    """`scale` stretches the squares."""
    rng = np.random.default_rng(3)
    schema = td.Schema({"place": td.Place(), **{f"a{i}": td.Number(0, 1) for i in range(2, ATTRIBUTES)}})
    hot = hot_areas(rng, 10_000)
    centre = hot[rng.integers(0, len(hot), n)] + rng.normal(0, 0.005, (n, 2))
    half = scale * (0.5 + 1.5 * rng.random((n, 1))) / 200
    columns = {"id": names("s", n), "place.box": boxes(centre - half, centre + half)}
    columns |= interval_columns(rng, n, predicates - 2, range(2, ATTRIBUTES))
    where = hot[rng.integers(0, len(hot), events)] + rng.normal(0, 0.002, (events, 2))
    table = {"id": names("e", events), "place": points(where), **value_columns(rng, events, range(2, ATTRIBUTES), 13)}
    return Workload("ranges-place", schema, pa.table(columns), pa.table(table))


def ranges(n: int, events: int, predicates: int = 10) -> Workload:
    rng = np.random.default_rng(4)
    schema = td.Schema({f"a{i}": td.Number(0, 1) for i in range(ATTRIBUTES)})
    columns = {"id": names("s", n), **interval_columns(rng, n, predicates, range(ATTRIBUTES))}
    table = {"id": names("e", events), **value_columns(rng, events, range(ATTRIBUTES), 15)}
    return Workload("ranges", schema, pa.table(columns), pa.table(table))


def words_box(n: int, events: int, *, side: tuple[float, float] = (0.01, 0.05)) -> Workload:
    rng = np.random.default_rng(5)
    schema = td.Schema({"place": td.Place(), "about": td.Words("as-is")})
    cities = rng.random((60, 2))
    centre = clustered(rng, cities, n)
    half = (side[0] + (side[1] - side[0]) * rng.random((n, 2))) / 2
    columns = {
        "id": names("s", n),
        "place.box": boxes(centre - half, centre + half),
        "about.all": word_lists(rng, rng.integers(1, 6, n)),
    }
    table = {
        "id": names("e", events),
        "place": points(clustered(rng, cities, events)),
        "about": word_lists(rng, rng.integers(6, 21, events)),
    }
    return Workload("words-box", schema, pa.table(columns), pa.table(table))


def scored_boxes(n: int, events: int, side: float) -> Workload:
    """Boxes of about `side` in a unit square: about n * side^2 match."""
    rng = np.random.default_rng(6)
    schema = td.Schema({"place": td.Place(plane=True)})
    centre = rng.random((n, 2))
    half = side * (0.5 + rng.random((n, 2))) / 2
    columns = {"id": names("s", n), "place.box": boxes(centre - half, centre + half), "score": rng.random(n)}
    return Workload(
        "boxes", schema, pa.table(columns), pa.table({"id": names("e", events), "place": points(rng.random((events, 2)))})
    )


def categories(n: int, events: int) -> Workload:
    rng = np.random.default_rng(8)
    schema = td.Schema({f"c{i}": td.Category() for i in range(3)})
    values = pa.array([f"v{i}" for i in range(200)])
    columns, table = {"id": names("s", n)}, {"id": names("e", events)}
    for name in schema:
        wanted = values.take(pa.array(zipf(rng, 200, n)))
        columns[f"{name}.in"] = pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32)), wanted)
        table[name] = values.take(pa.array(zipf(rng, 200, events)))
    return Workload("categories", schema, pa.table(columns), pa.table(table))


def rooms(n: int, events: int, hearers: int) -> Workload:
    """Row r hears of the room r // hearers, and of nothing else."""
    schema = td.Schema({"room": td.Category()})
    names_of = pa.array([f"r{i}" for i in range(-(-n // hearers))])
    wanted = names_of.take(pa.array(np.arange(n) // hearers))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32)), wanted)
    spoken = names_of.take(pa.array(np.random.default_rng(9).integers(0, n // hearers, events)))
    return Workload(
        "rooms", schema, pa.table({"id": names("s", n), "room.in": lists}), pa.table({"id": names("e", events), "room": spoken})
    )


def mixed(n: int, events: int) -> Workload:
    rng = np.random.default_rng(7)
    schema = td.Schema(
        {
            "price": td.Number(0, 1),
            "size": td.Number(0, 1),
            "stars": td.Number(0, 1),
            "brand": td.Category(),
            "place": td.Place(),
            "about": td.Words("as-is"),
        }
    )
    brands = pa.array([f"brand{i}" for i in range(500)])
    cities = rng.random((60, 2))
    centre, half = clustered(rng, cities, n), (0.01 + 0.04 * rng.random((n, 2))) / 2
    columns = {"id": names("s", n)}
    for name in ("price", "size", "stars"):
        low, high = np.sort(rng.random((2, n)), axis=0)
        missing = rng.random(n) < 0.4
        columns |= {f"{name}.lo": pa.array(low, mask=missing), f"{name}.hi": pa.array(high, mask=missing)}
    brand = brands.take(pa.array(zipf(rng, 500, n)))
    has_brand = pa.array(rng.random(n) < 0.5)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32)), brand)
    columns["brand.in"] = pc.if_else(has_brand, lists, pa.scalar(None, lists.type))
    columns["place.box"] = boxes(centre - half, centre + half, missing=rng.random(n) < 0.3)
    columns["about.all"] = word_lists(rng, rng.integers(0, 3, n), null_empty=True)
    table = {"id": names("e", events), **{name: rng.random(events) for name in ("price", "size", "stars")}}
    table |= {
        "brand": brands.take(pa.array(zipf(rng, 500, events))),
        "place": points(clustered(rng, cities, events)),
        "about": word_lists(rng, rng.integers(6, 21, events)),
    }
    return Workload("mixed", schema, pa.table(columns), pa.table(table))


def names(prefix: str, n: int) -> pa.Array:
    width = len(str(max(n - 1, 0)))
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(pa.array(np.arange(n)).cast(pa.string()), width, "0"), "")


def zipf(rng: np.random.Generator, values: int, n: int, offset: float = 1.0) -> NDArray[np.int64]:
    weight = 1.0 / (np.arange(values) + offset)
    return np.searchsorted(np.cumsum(weight / weight.sum()), rng.random(n)).clip(max=values - 1)


def hot_areas(rng: np.random.Generator, n: int) -> Floats:
    """Centres of a city of 1 x 1 degree: four in five near one of twelve sub-centres."""
    sub = rng.random((12, 2)) * 0.6 + 0.2
    near = sub[rng.integers(0, 12, n)] + rng.normal(0, 0.06, (n, 2))
    return np.where((rng.random(n) < 0.8)[:, None], near, rng.random((n, 2))).clip(0.01, 0.99)


def clustered(rng: np.random.Generator, cities: Floats, n: int) -> Floats:
    weight = 1.0 / np.arange(1, len(cities) + 1)
    near = cities[rng.choice(len(cities), n, p=weight / weight.sum())] + rng.normal(0, 0.04, (n, 2))
    return np.where((rng.random(n) < 0.2)[:, None], rng.random((n, 2)), near).clip(0, 1)


def boxes(low: Floats, high: Floats, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    corners = pa.array(np.round(np.hstack([low, high]), 7).ravel())
    mask = None if missing is None else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(corners, 4, mask=mask)


def points(where: Floats) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(np.round(where[:, i], 7)) for i in (0, 1)], ["x", "y"])


def interval_columns(rng: np.random.Generator, n: int, predicates: int, attributes: range) -> dict[str, pa.Array]:
    """`predicates` intervals on attributes drawn by Zipf without repeats."""
    weight = 1.0 / np.arange(1, len(attributes) + 1)
    keys = -np.log(rng.random((n, len(attributes)))) / weight
    chosen = np.zeros((n, len(attributes)), np.bool_)
    np.put_along_axis(chosen, np.argpartition(keys, predicates - 1, axis=1)[:, :predicates], True, axis=1)
    columns: dict[str, pa.Array] = {}
    for place, attribute in enumerate(attributes):
        low, high = np.sort(rng.random((2, n)), axis=0)
        missing = ~chosen[:, place]
        columns |= {f"a{attribute}.lo": pa.array(low, mask=missing), f"a{attribute}.hi": pa.array(high, mask=missing)}
    return columns


def value_columns(rng: np.random.Generator, n: int, attributes: range, fewest: int) -> dict[str, pa.Array]:
    order = np.argsort(rng.random((n, len(attributes))), axis=1)
    present = order < rng.integers(fewest, len(attributes) + 1, (n, 1))
    return {f"a{a}": pa.array(rng.random(n), mask=~present[:, place]) for place, a in enumerate(attributes)}


def word_lists(rng: np.random.Generator, length: NDArray[np.int64], null_empty: bool = False) -> pa.Array:
    """Lists of distinct words, Zipf with a flattened head; a list of none can be null instead."""
    start = np.concatenate([[0], np.cumsum(length)])
    word = zipf(rng, WORDS, int(start[-1]), offset=20.0)
    owner = np.repeat(np.arange(len(length)), length)
    pairs = np.unique(owner.astype(np.int64) * WORDS + word)
    start = np.searchsorted(pairs, np.arange(len(length) + 1) * WORDS)
    texts = pa.array([f"w{i}" for i in range(WORDS)])
    words = pa.DictionaryArray.from_arrays(pa.array((pairs % WORDS).astype(np.int32)), texts).cast(pa.string())
    mask = pa.array(np.diff(start) == 0) if null_empty else None
    return pa.ListArray.from_arrays(pa.array(start.astype(np.int32)), words, mask=mask)
