"""Costly filters, priced at the door and refused with the price: alone, in bulk, changed, and only asked about."""

from __future__ import annotations

import json

import pytest

from tests.serve.access.test_keys import SUBSCRIPTIONS, closed  # noqa: F401 - a fixture
from tidings.serve.access.prices import OWNERS

PATTERN = f"brand LIKE '%{'a_' * 100}b%'"
NAMES = ", ".join(f"'n{number}'" for number in range(OWNERS + 1))
CORNERS = ", ".join(f"{number / 1000:.6f} {number * number / 10**7:.9f}" for number in range(1, OWNERS + 2))
COSTLY = {
    "a pattern that is asked at each place": PATTERN,
    "a long list": f"brand IN ({NAMES})",
    "a polygon of many corners": f"S_INTERSECTS(place, POLYGON((0 0, {CORNERS}, 0 0)))",
}


@pytest.mark.parametrize("filter", COSTLY.values(), ids=COSTLY)
def test_a_hostile_owners_filter_is_refused_with_its_price(closed, filter):  # noqa: F811
    _, admin, made = closed
    eve = made(scopes=["owner"], owner="eve")
    assert eve.put(f"{SUBSCRIPTIONS}/a", json={"filter": "price < 5"}).status_code == 201
    line = json.dumps({"id": "b", "filter": filter})
    for answer in (
        eve.put(f"{SUBSCRIPTIONS}/b", json={"filter": filter}),
        eve.patch(f"{SUBSCRIPTIONS}/a", json={"filter": filter}),
        eve.post("/topics/deals/preview", json={"filter": filter}),
        eve.post(SUBSCRIPTIONS, content=line, headers={"content-type": "application/x-ndjson"}),
    ):
        assert answer.status_code == 413, answer.json()
        said = answer.json()
        assert said["price"] > said["limit"] == OWNERS
        assert f"a price of {said['price']}" in said["detail"]
    assert [found["id"] for found in eve.get(SUBSCRIPTIONS).json()["subscriptions"]] == ["a"]
    assert admin.put(f"{SUBSCRIPTIONS}/b", json={"filter": filter}).status_code == 201


def test_a_keys_own_limit_holds(closed):  # noqa: F811
    _, _, made = closed
    bob = made(scopes=["owner"], owner="bob", quotas={"price": 3})
    assert bob.put(f"{SUBSCRIPTIONS}/a", json={"filter": "price < 5"}).status_code == 201
    answer = bob.put(f"{SUBSCRIPTIONS}/a", json={"filter": "price < 5 OR brand IN ('x', 'y')"})
    assert (answer.status_code, answer.json()["limit"]) == (413, 3)


def test_beyond_the_engines_own_limit_nobody_is_served(closed):  # noqa: F811
    _, admin, _ = closed
    answer = admin.put(f"{SUBSCRIPTIONS}/a", json={"filter": f"brand LIKE '%{'a_' * 2000}b%'"})
    assert (answer.status_code, "a price of" in answer.json()["detail"]) == (422, True)
