"""The README's path in a process of its own: what is compiled here, and what would have to be.

Run as `python -m tests.compiling.first_calls`; prints JSON. `compiled` counts what numba compiled in this process, `loaded` kernels
that a cache had, `wanted` the kernels that were called, `functions` them and all kernels that their sources reach. With `--packed`
every call of a topic is made, packed and not.
"""

from __future__ import annotations

import json
import platform
import sys
from types import FunctionType
from typing import Any

import tidings
from tidings import Category, Number, Place, Topic, Words

OFFER = {"id": "e1", "price": 3200, "brand": "Huawei", "place": (121.44, 36.16), "about": "P30 128GB"}
NEAR = "S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"


def readme() -> None:
    """Three subscriptions, one of them with a list; every question once; then a keyed topic."""
    deals = Topic("deals", {"price": Number(0, 10_000), "brand": Category(), "place": Place(), "about": Words()})
    deals.subscribe("ann", f"price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30')) AND {NEAR}", score=2.0)
    deals.subscribe("bob", "price < 500", k=5, window="1 day", by="-price")
    deals.subscribe("cat", "brand = 'Huawei'")
    assert [match.subscription for match in deals.match(OFFER)] == ["ann", "cat"]
    assert [match.subscription for match in deals.match(OFFER, k=1)] == ["ann"]
    assert {note.subscription for note in deals.publish(OFFER)} == {"ann", "cat"}
    assert {note.subscription for note in deals.publish({**OFFER, "id": "e2", "price": 100})} == {"ann", "bob", "cat"}
    assert [match.event for match in deals.top("bob")] == ["e2"]
    flats = Topic("flats", {"size": Number(0, 500), "rent": Number(0, 10_000)}, key="address")
    flats.subscribe("ann", "size BETWEEN 50 AND 80", k=1, by="-rent")
    assert [note.why for note in flats.publish({"address": "Elm 1", "size": 60, "rent": 900})] == ["entered"]


def reached(kernel: Any, seen: set[FunctionType]) -> None:
    if kernel.function not in seen:
        seen.add(kernel.function)
        for name in kernel.function.__code__.co_names:
            other = kernel.function.__globals__.get(name)
            if type(other).__name__ == "Kernel":
                reached(other, seen)


def loaded() -> int:
    """Kernels of which this process has code that it did not compile."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tidings.")]
    kernels = {value for module in modules for value in vars(module).values() if type(value).__name__ == "Kernel"}
    made = [kernel._dispatcher for kernel in kernels if kernel._dispatcher is not None]
    return sum(len(dispatcher.stats.cache_hits) for dispatcher in made)


def main() -> None:
    numba_at_import = "numba" in sys.modules
    from numba.core import event

    from tidings.compiling import dispatching
    from tidings.warm import rehearsal

    with event.install_recorder("numba:compile") as recorder:
        readme()
        for act in rehearsal.ACTS if "--packed" in sys.argv else ():
            act()
    with dispatching.rehearsing() as wanted:
        readme()
    functions: set[FunctionType] = set()
    for one in wanted:
        reached(getattr(sys.modules[one.module], one.name), functions)
    counts = {"compiled": len(recorder.buffer), "wanted": len(wanted), "functions": len(functions), "loaded": loaded()}
    where = {"tidings": tidings.__file__, "python": platform.python_version()}
    print(json.dumps({**counts, **where, "numba_at_import": numba_at_import}))


if __name__ == "__main__":
    main()
