"""What `tidings serve --demo` shows: two topics, people who wait, and a thread that goes on publishing by the public API.

`offers` is a stream: things for sale in Swiss towns, found by place, words and price. `stock` is a table: shoes whose prices
change, with watchers who hear of every change of their best few. All is drawn from a seed, but for the clock.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import tidings as td
from tidings.client.connecting import connect
from tidings.client.remote_topic import RemoteTopic
from tidings.client.service import Service
from tidings.errors import TidingsError

OFFERS = {"price": td.Number(0, 2000), "brand": td.Category(), "place": td.Place(), "about": td.Words()}
STOCK = {"price": td.Number(0, 500), "size": td.Number(30, 50), "brand": td.Category()}
TOWNS = {
    "zurich": (8.54, 47.37, 9), "geneva": (6.14, 46.20, 5), "basel": (7.59, 47.56, 4), "lausanne": (6.63, 46.52, 3),
    "bern": (7.45, 46.95, 3), "winterthur": (8.72, 47.50, 2), "lucerne": (8.31, 47.05, 2), "st-gallen": (9.38, 47.42, 2),
    "lugano": (8.95, 46.01, 2), "biel": (7.25, 47.14, 1), "thun": (7.63, 46.75, 1), "chur": (9.53, 46.85, 1),
    "fribourg": (7.16, 46.80, 1), "schaffhausen": (8.63, 47.70, 1), "sion": (7.36, 46.23, 1), "davos": (9.84, 46.80, 1),
}  # fmt: skip
"""Longitude, latitude, and how many live there, about."""
BRANDS = ("Alba", "Boreal", "Cima", "Delta", "Enzian")
GOODS = (
    "bicycle",
    "helmet",
    "jacket",
    "boots",
    "skis",
    "tent",
    "camera",
    "laptop",
    "phone",
    "guitar",
    "sofa",
    "lamp",
    "watch",
    "drone",
)
STATES = ("used", "new", "vintage", "small", "large", "red", "blue", "light")
PEOPLE = 300
OBJECTS = 80
PAUSE = 0.25
"""Seconds between batches."""
BATCH = 10


class Coming(threading.Thread):
    """Events that keep coming until the process ends."""

    def __init__(self, url: str, key: str | None = None) -> None:
        super().__init__(name="the demo's events", daemon=True)
        self.url, self.key = url, key

    def run(self) -> None:
        with connect(self.url, self.key) as service:
            self.wait(service)
            offers, stock = prepared(service)
            for events, objects in batches(random.Random(2026)):
                offers.post(events)
                stock.post(objects)
                time.sleep(PAUSE)

    def wait(self, service: Service) -> None:
        """Until the service answers."""
        while True:
            try:
                service.topics()
                return
            except TidingsError:
                time.sleep(0.1)


def prepared(service: Service) -> tuple[RemoteTopic, RemoteTopic]:
    """The two topics, made where they are not there yet, with those who wait."""
    rng = random.Random(7)
    offers = service.make("offers", OFFERS, retention="10 minutes")
    stock = service.make("stock", STOCK, key="sku")
    if len(offers) == 0:
        offers.subscribe_many([{"id": id, **said} for id, said in people(rng)])
    if len(stock) == 0:
        stock.subscribe_many([*shops(rng)])
    return offers, stock


def shops(rng: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(40):
        low = round(rng.uniform(30, 46), 1)
        asked = f"size BETWEEN {low} AND {round(low + rng.uniform(0.5, 6), 1)}"
        yield {
            "id": f"shop-{number:02d}",
            "filter": asked,
            "k": rng.choice((2, 3, 5)),
            "by": "-price",
            "owner": f"shop {number % 5}",
        }


def people(rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in range(PEOPLE):
        town, (x, y) = near(rng, 0.01)
        half, dear = rng.uniform(0.02, 0.08), rng.randrange(60, 500, 10)
        box = f"BBOX({x - half:.4f}, {y - half * 0.7:.4f}, {x + half:.4f}, {y + half * 0.7:.4f})"
        filter = f"price <= {dear} AND S_INTERSECTS(place, {box}) AND A_CONTAINS(about, ('{rng.choice(GOODS)}'))"
        said: dict[str, Any] = {"filter": filter, "owner": f"user {number % 60}", "tags": [town], "score": round(rng.random(), 2)}
        yield f"{town}-{number:03d}", said | ({"k": 3, "window": "10 minutes", "by": "-price"} if number % 4 == 0 else {})


def near(rng: random.Random, spread: float = 0.04) -> tuple[str, tuple[float, float]]:
    """A town by its people, and a point about there."""
    [town] = rng.choices(list(TOWNS), [people for _, _, people in TOWNS.values()])
    x, y, _ = TOWNS[town]
    return town, (round(rng.gauss(x, spread), 4), round(rng.gauss(y, spread * 0.7), 4))


def batches(rng: random.Random) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Offers, and changes of the stock, without end. Ids tell runs apart."""
    began, count = f"{int(time.time()):x}", 0
    while True:
        events = []
        for _ in range(BATCH):
            about = f"{rng.choice(STATES)} {rng.choice(GOODS)} {rng.choice(GOODS)}"
            price = round(min(rng.gammavariate(2.0, 120.0), 2000.0), 2)
            events.append(
                {"id": f"{began}-{count}", "price": price, "brand": rng.choice(BRANDS), "place": near(rng)[1], "about": about}
            )
            count += 1
        objects = []
        for number in rng.sample(range(OBJECTS), 2):
            size = round(30 + (number * 7 % 41) / 2, 1)
            objects.append(
                {"sku": f"shoe-{number:02d}", "price": round(rng.uniform(20, 400), 2), "size": size, "brand": BRANDS[number % 5]}
            )
        yield events, objects
