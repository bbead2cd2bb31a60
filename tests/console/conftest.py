"""What the tests of the page share: one service with a stream, a table and a topic without a place."""

from __future__ import annotations

import json

import pytest

from tests.serve.conftest import serving
from tidings.serve.settings import Settings

OFFERS = {"schema": {"price": {"type": "number", "lo": 0, "hi": 1000}, "brand": "category", "place": "place", "about": "words"}}
STOCK = {"schema": {"size": {"type": "number", "lo": 30, "hi": 50}, "price": "number"}, "key": "sku"}
PLAIN = {"schema": {"heat": "number", "rain": "number", "wind": "number"}}
HURT = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A client of a service that is open to all; sinks may reach loopback."""
    with serving(Settings(tmp_path_factory.mktemp("console") / "data", open=True, allow=("127.0.0.1",))) as client:
        for name, made in {"offers": OFFERS, "stock": STOCK, "plain": PLAIN}.items():
            assert client.put(f"/topics/{name}", json=made).status_code == 201
        people = {
            "ann": "price <= 300 AND S_INTERSECTS(place, BBOX(8.4, 47.3, 8.7, 47.5))",
            "bob": "brand = 'Alba'",
            HURT: "price > 990",
        }
        for number, (name, filter) in enumerate(people.items()):
            said = {"filter": filter, "owner": f"owner of {name}", "tags": [name], "score": number + 0.5}
            assert client.post("/topics/offers/subscriptions", content=_line({"id": name, **said}), headers=LINES).is_success
        client.put("/topics/offers/subscriptions/five", json={"k": 5, "window": "1 hour", "by": "-price"})
        for number in range(6):
            said = {"filter": f"size BETWEEN {30 + number} AND {36 + number}", "k": 2, "by": "-price"}
            client.put(f"/topics/stock/subscriptions/shop-{number}", json=said)
        client.post("/topics/stock/events", json=[{"sku": f"s{n:02d}", "size": 30 + n, "price": 100 - n} for n in range(20)])
        client.put("/topics/plain/subscriptions/warm", json={"filter": "heat > 20"})
        yield client


LINES = {"Content-Type": "application/x-ndjson"}


def _line(said: dict[str, object]) -> bytes:
    return json.dumps(said).encode()


@pytest.fixture
def url(service):
    return str(service.base_url).rstrip("/")
