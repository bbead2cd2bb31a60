"""The calls that `first_minute` times, `readme` or `docs`, in a process that imports nothing but what they need.

SciPy is hidden: it comes with what the experiments need, a user's environment lacks it, and numba imports it where it is found.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def calls(which: str) -> dict[str, Any]:
    """Every call of a path: CPU seconds of this process in all, and the one that was waited for longest."""
    import tidings  # noqa: F401 - what it costs is part of the path
    from tidings.compiling import beside

    imported = time.process_time()
    waited: dict[str, tuple[float, float]] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        cpu, clock = time.process_time(), time.monotonic()
        result = call()
        waited[name] = (time.process_time() - cpu, time.monotonic() - clock)
        return result

    (readme if which == "readme" else docs)(timed)
    total = time.process_time()
    beside.stop()
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    longest = max(waited, key=lambda name: waited[name][0])
    return {
        "import": round(imported, 3),
        "process": round(total, 3),
        "beside": round(others.ru_utime + others.ru_stime, 3),
        "longest": {"call": longest, "cpu": round(waited[longest][0], 3), "waited": round(waited[longest][1], 3)},
        "calls": {name: round(cpu, 4) for name, (cpu, _) in waited.items()},
    }


def readme(timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    import tidings as td

    near = "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"
    offer = {"id": "e1", "price": 3200, "brand": "Huawei", "place": (121.44, 36.16), "about": "P30 128GB"}
    flat = {"address": "Elm 1", "size": 60, "rent": 900}
    deals = td.Topic("deals", {"price": td.Number(0, 10_000), "brand": td.Category(), "place": td.Place(), "about": td.Words()})
    ann = f"price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30')) AND {near}"
    timed("subscribe", lambda: deals.subscribe("ann", ann, score=2.0))
    timed("subscribe to a list", lambda: deals.subscribe("bob", "price < 500", k=5, window="1 day", by="-price"))
    timed("subscribe again", lambda: deals.subscribe("cat", "brand = 'Huawei'"))
    timed("match", lambda: deals.match(offer))
    timed("match(k)", lambda: deals.match(offer, k=5))
    timed("explain", lambda: deals.explain(offer, "bob"))
    timed("publish", lambda: deals.publish(offer))
    timed("publish into a list", lambda: deals.publish({**offer, "id": "e2", "price": 100}))
    timed("top", lambda: deals.top("bob"))
    flats = td.Topic("flats", {"size": td.Number(0, 500), "rent": td.Number(0, 10_000)}, key="address")
    timed("subscribe, keyed", lambda: flats.subscribe("ann", "size BETWEEN 50 AND 80", k=1, by="-rent"))
    timed("publish, keyed", lambda: flats.publish(flat))


def docs(timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Each public call of the topics that the rehearsal makes, timed by name and number."""
    from tidings.topic.topic import Topic
    from tidings.warm import rehearsal

    numbers: dict[str, int] = {}

    class Timed(Topic):
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if name not in CALLS:
                return value
            numbers[name] = numbers.get(name, 0) + 1
            return lambda *given, **named: timed(f"{name} {numbers[name]}", lambda: value(*given, **named))

    rehearsal.Topic = Timed  # type: ignore[attr-defined]
    for act in rehearsal.ACTS:
        act()


CALLS = {"subscribe", "subscribe_many", "match", "match_batch", "publish", "publish_batch", "search", "advance", "top", "flush"}

if __name__ == "__main__":
    sys.modules["scipy"] = None  # type: ignore[assignment]
    print(json.dumps(calls(sys.argv[1])))
