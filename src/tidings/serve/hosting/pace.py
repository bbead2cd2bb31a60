"""Whether questions of a topic are quick enough to be answered where everybody else waits, in the event loop."""

from __future__ import annotations

LONG = 0.002
"""Seconds of the thread's own time: a machine that is busy with others does not make a question long."""
FEWEST, MOST = 16, 1024
"""Questions that are handed over after one that took long: twice as many each time, until one is quick again."""


class Pace:
    def __init__(self) -> None:
        self._aside, self._next = 0, FEWEST

    @property
    def quick(self) -> bool:
        """Asked once for every question."""
        if self._aside:
            self._aside -= 1
            return False
        return True

    def took(self, seconds: float) -> None:
        if seconds > LONG:
            self._aside, self._next = self._next, min(2 * self._next, MOST)
        else:
            self._next = FEWEST
