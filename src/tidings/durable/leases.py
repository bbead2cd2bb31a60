"""Pins: who reads which manifest, and until when its files must stay.

    pins/<reader>/<n>.json      {"manifest": N, "time": microseconds, "until": seconds}

A reader is a streaming query, whose pins are numbered by its micro-batches, or a batch DataFrame. A pin holds until its lease ends,
whether the reader lives or not; who reads on makes a new one with the next micro-batch. The one that writes the topic cleans up,
and leaves what a lease holds. Pins of earlier versions have no `until`: they hold for LEASE from when they were written.
"""

from __future__ import annotations

import json
import os
import time as wall_clock
from pathlib import Path
from typing import Any

PINS = "pins"
FRAME = "frame-"
"""Begins the name of a reader that is a batch DataFrame."""
LEASE = 7 * 86_400.0
"""Seconds."""


def lease_from(now: float) -> float:
    return now + LEASE


def held(body: bytes, written: float, now: float) -> int | None:
    """The manifest that a pin holds now; None if its lease has ended, or a crash left it without sense."""
    try:
        pin: dict[str, Any] = json.loads(body)
        return int(pin["manifest"]) if float(pin.get("until", written + LEASE)) > now else None
    except (ValueError, KeyError, TypeError):
        return None


def held_in(folder: Path) -> set[int]:
    """The manifests that pins in a topic's folder hold. Pins and their folders may go while they are listed."""
    now, found = wall_clock.time(), set[int]()
    for place, _, files in os.walk(folder / PINS):
        for file in files:
            if file.endswith(".json"):
                path = Path(place, file)
                try:
                    number = held(path.read_bytes(), path.stat().st_mtime, now)
                except OSError:
                    continue
                if number is not None:
                    found.add(number)
    return found
