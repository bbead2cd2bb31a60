"""Real movement: ADS-B tracks of aircraft, as the PyPI package `traffic` (MIT) carries them among its samples.

`quickstart` has 236 flights around Paris at a position a second, `switzerland` 1,243 flights over Switzerland. The package itself
needs much that is not installed here; its sample files are plain JSON and are read without it.

A subscriber follows a flight, displaced by its own distance, position by position and over again when it ends; its notification
area is a square of the side that the paper gives. Coordinates are shares of the extent of all tracks.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from importlib.metadata import distribution

import numpy as np

from experiments.motree_workload import Workload, dense_clauses, dense_events
from experiments.report import Report, cpu_seconds
from tidings.model.columns.arrays import EventColumns

COLLECTIONS = ("quickstart", "switzerland")
SHORTEST = 60


def tracks() -> list[np.ndarray]:
    """Positions (x, y) of each flight, in order of time; flights of fewer than SHORTEST positions are left out."""
    flights: list[np.ndarray] = []
    for name in COLLECTIONS:
        file = distribution("traffic").locate_file(f"traffic/data/samples/collections/{name}.json.gz")
        with gzip.open(file) as rows:
            known = [r for r in json.load(rows) if r["latitude"] is not None and r["longitude"] is not None]
        flight: dict[tuple, list] = {}
        for row in sorted(known, key=lambda r: r["timestamp"]):
            flight.setdefault((row["icao24"], row["callsign"]), []).append((row["longitude"], row["latitude"]))
        whole = [np.array(points) for points in flight.values() if len(points) >= SHORTEST]
        low, high = np.min([p.min(axis=0) for p in whole], axis=0), np.max([p.max(axis=0) for p in whole], axis=0)
        flights += [(points - low) / (high - low) for points in whole]
    return flights


def moves(subscribers: int, steps: int, seed: int = 11) -> np.ndarray:
    """steps + 1 x subscribers x 4: the notification areas of all subscribers at each step."""
    rng = np.random.default_rng(seed)
    flights = tracks()
    length = np.array([len(points) for points in flights])
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    followed = rng.integers(0, len(flights), subscribers)
    first = rng.integers(0, length[followed])
    at = start[followed] + (first + np.arange(steps + 1)[:, None]) % length[followed]
    centre = np.concatenate(flights)[at] + rng.normal(0, 0.02, (subscribers, 2))
    reach = rng.uniform(0.5, 2, (subscribers, 1)) / 100
    return np.concatenate([centre - reach, centre + reach], axis=2)


def real_tracks(report: Report, trees: tuple, size: int, steps: int) -> None:
    """Subscribers that follow real aircraft: what a move costs beside a deletion and an insertion, and that answers stay right."""
    work, places = Workload(), moves(size, steps)
    names, clauses, values = np.arange(size, dtype=np.int32), work.clauses(size), work.events(200)
    shares = np.random.default_rng(12).random((200, 2))
    events = EventColumns(values.value, np.hstack([shares, shares]), values.word_start, values.word)
    rows = []
    for label, tree in trees:
        at = replace(clauses, box=places[0])
        tree.insert(names, at)
        seconds = {"move along the tracks": [], "move to another subscriber's place": [], "delete and insert": []}
        for step in range(1, steps + 1):
            seconds["move along the tracks"].append(cpu_seconds(partial(tree.move_batch, names, places[step]), 1))
        lo, hi = dense_clauses(replace(clauses, box=places[steps]))
        met = (lo[None] <= dense_events(events)[:, None]) & (dense_events(events)[:, None] <= hi[None]) | np.isinf(lo[None])
        found = zip(*(part.tolist() for part in tree.match_batch(events)), strict=True)
        assert [list(pair) for pair in sorted(found)] == np.argwhere(met.all(axis=2)).tolist(), (
            "the tree disagrees with the definition"
        )
        for step in range(3):
            far = places[0][np.random.default_rng(step).permutation(size)]
            seconds["move to another subscriber's place"].append(cpu_seconds(partial(tree.move_batch, names, far), 1))
            seconds["delete and insert"].append(
                cpu_seconds(partial(tree.delete, names), 1) + cpu_seconds(partial(tree.insert, names, at), 1)
            )
        rows.append({"tree": label, **{f"{act}, µs": min(each) / size * 1e6 for act, each in seconds.items()}})
    report.table("tracks", rows, f"{size:,} subscribers that follow real aircraft, a second a step: CPU time of a change")
    [paper, _] = rows
    ratio = paper["delete and insert, µs"] / paper["move along the tracks, µs"]
    text = "Section 4.6: updating a moving subscription in place is cheaper than deleting and inserting it (on real tracks)"
    report.claim(text, ratio > 1, f"{ratio:.1f} times; {paper['move along the tracks, µs']:.2f} µs a move")
