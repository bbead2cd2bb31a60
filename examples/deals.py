"""Deals in town: filters, ranking, windows, both directions, why and why not."""

from __future__ import annotations

import tidings as td

SCHEMA = {"price": td.Number(0, 10_000), "brand": td.Category(), "place": td.Place(), "about": td.Words()}


def main() -> None:
    deals = td.Topic("deals", SCHEMA)
    near_me = "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"
    deals.subscribe("ann", f"price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30')) AND {near_me}", score=2.0)
    deals.subscribe("bob", "price < 500", k=2, window="1 day", by="-price", time="2026-11-01T08:00:00Z")
    deals.subscribe("cat", "brand IN ('Huawei', 'Nokia') OR A_OVERLAPS(about, ('phone'))")

    offer = {"id": "e1", "price": 3200, "brand": "Huawei", "place": (121.44, 36.16), "about": "P30 128GB"}
    print("who matches, best first:", [(m.subscription, m.score) for m in deals.match(offer, k=5)])
    print("why not bob:", deals.explain(offer, "bob"))

    for hour, price in ((9, 400), (10, 300), (11, 450), (12, 200)):
        event = {"id": f"h{hour}", "price": price, "brand": "Nokia", "expires": "2026-11-03"}
        for note in deals.publish(event, time=f"2026-11-01T{hour:02}:00:00Z"):
            print(f"{note.at:%H:%M} {note.subscription} hears of {note.event} ({note.why}, score {note.score:g})")
    for note in deals.advance("2026-11-02T10:30:00Z"):
        print(f"{note.at:%d %H:%M} {note.subscription} hears of {note.event} ({note.why})")
    print("bob's list:", [m.event for m in deals.top("bob", time="2026-11-02T10:30:00Z")])
    print("live under 400:", deals.search("price < 400", time="2026-11-02T10:30:00Z")["id"].to_pylist())


if __name__ == "__main__":
    main()
