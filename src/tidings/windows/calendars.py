"""The calendars that windows go by: when the periods of each begin, as arrays that kernels ask (`memory`: `calendar`, `period`).

They reach from the period of the clock to some time beyond the last event, and are made anew when an event lies beyond. What is
older than the clock's period has left every such window, so nothing need be known of it.
"""

from __future__ import annotations

import numpy as np

from tidings.model.values.calendar import Calendar
from tidings.model.values.times import DAY
from tidings.windows.memory import BEGINNING, CLOCK, STORED, Ints, Memory

AHEAD = 400 * DAY
NO_TIMES = np.zeros(0, np.int64)


class Calendars:
    def __init__(self) -> None:
        self._all: list[Calendar] = []
        self._until = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    def duration(self, calendar: Calendar) -> int:
        """What stands for the duration of a window of this calendar."""
        if calendar not in self._all:
            self._all.append(calendar)
            self._until = BEGINNING
        return -1 - self._all.index(calendar)

    def covering(self, m: Memory, times: Ints) -> Memory:
        """The memory with periods for events of these times."""
        clock, stored = int(m.meter[CLOCK]), m.events["time"][: m.meter[STORED]]
        known = np.concatenate([stored, times]) if self._until == BEGINNING else times
        last = int(known.max(initial=clock))
        if self._until != BEGINNING and last < self._until:
            return m
        last = 0 if last == BEGINNING else last
        starts = [each.starts(int(known.min(initial=last)) if clock == BEGINNING else clock, last + AHEAD) for each in self._all]
        self._until = min(begins[-1] for begins in starts)
        return m._replace(
            calendar=np.cumsum([0, *map(len, starts)]), period=np.concatenate([np.array(s, np.int64) for s in starts])
        )


def period_ends(m: Memory, which: int, times: Ints) -> Ints:
    """As `sorted_view.period_end`, of many."""
    periods = m.period[m.calendar[which] : m.calendar[which + 1]]
    ends: Ints = periods[np.minimum(np.searchsorted(periods, times, side="right"), len(periods) - 1)]
    return ends
