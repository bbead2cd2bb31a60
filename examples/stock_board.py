"""A keyed topic: every watcher sees each change of its two cheapest current objects."""

from __future__ import annotations

import tidings as td


def main() -> None:
    flats = td.Topic("flats", {"size": td.Number(0, 500), "rent": td.Number(0, 10_000)}, key="address")
    flats.subscribe("ann", "size BETWEEN 50 AND 80", k=2, by="-rent")
    changes = [
        {"address": "Elm 1", "size": 60, "rent": 900},
        {"address": "Oak 7", "size": 75, "rent": 1100},
        {"address": "Fir 3", "size": 55, "rent": 800},
        {"address": "Elm 1", "size": 60, "rent": 1200},
        {"address": "Fir 3", "deleted": True},
    ]
    for change in changes:
        for note in flats.publish(change):
            print(f"{note.subscription}: {note.event} {note.why} at rank {note.rank}, rent {-note.score:g}")
    print("the two cheapest now:", [m.event for m in flats.top("ann")])


if __name__ == "__main__":
    main()
