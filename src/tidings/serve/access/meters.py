"""Rates and counts of each caller, as they are now: events a second by a bucket that fills, open streams by a count.

A process counts for itself. Events are counted where they are published, so exactly; streams in each process that serves them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.serve.access.callers import Caller
from tidings.serve.refusals import TooLarge, TooMany


class Meters:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._filled: dict[str, tuple[float, float]] = {}
        """what is left in a caller's bucket, and when that was so"""
        self._streams: Counter[str] = Counter()

    def events(self, caller: Caller, count: int) -> None:
        """So many events are about to be published. A bucket holds one second's worth, so a batch may be as large."""
        rate = caller.quotas.events
        if rate is None:
            return
        if count > max(rate, 1):
            raise TooLarge(
                f"the request has {count} events: this key may publish {rate:g} a second, and so many at once", limit=rate
            )
        now = self._clock()
        left, at = self._filled.get(caller.id, (max(rate, 1.0), now))
        left = min(left + (now - at) * rate, max(rate, 1.0))
        if left < count:
            self._filled[caller.id] = (left, now)
            wait = (count - left) / rate if rate else 3600.0
            raise TooMany(f"this key may publish {rate:g} events a second", wait, limit=rate)
        self._filled[caller.id] = (left - count, now)

    @contextmanager
    def stream(self, caller: Caller) -> Iterator[None]:
        """A stream is open within."""
        most = caller.quotas.streams
        if most is not None and self._streams[caller.id] >= most:
            raise TooMany(f"this key may have {most} streams open", 10, limit=most)
        self._streams[caller.id] += 1
        try:
            yield
        finally:
            self._streams[caller.id] -= 1
