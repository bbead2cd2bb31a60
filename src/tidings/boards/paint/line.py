"""The objects before and after a batch on one line, in order of x: who ranks above a height beside a place, who is exposed.

An object has one place on the line, or two if the batch moved it in x: one where it was and one where it is now. Nothing changes
while a batch is told, so that a walk along the line reads numbers that lie side by side, and a staircase of the past and one of
now have their corners at the same places: they are compared as whole numbers.

| array    | shape, dtype        | meaning                                                                                       |
|----------|---------------------|-----------------------------------------------------------------------------------------------|
| `number` | p, int32            | the object at a place                                                                           |
| `x`, `tie` | p, float64        | its x, ascending, and its tie-break                                                             |
| `y`      | 2 x p, float64      | its height before (`WAS`) and after (`NOW`); inf where it was not, or is not                    |
| `least`  | 2 x p / 32, float64 | the least height of 32 places                                                                   |
| `lowest` | 2 x p / 1024, float64 | the least of 32 of those                                                                      |
| `place`  | 2 x n, int32        | an object's place then and now; NONE if there is none                                           |

Cost: O(n) to draw. A walk reads the places up to the kth that ranks above the height, without groups where none does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings._jit import borrowing_kernel, kernel
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.points.object_arrays import BLOCKS, OBJECTS, ObjectArrays

WAS, NOW = 0, 1
GROUP, SHIFT = 32, 5


class Line(NamedTuple):
    number: Int32
    x: Float64
    tie: Float64
    y: Float64
    least: Float64
    lowest: Float64
    place: Int32


@kernel
def draw_line(now: ObjectArrays, numbers: Int64, old_x: Float64, old_y: Float64) -> Line:
    """The objects as they are now; of those with these numbers it is said where they were, with an old y of inf if nowhere."""
    away = np.zeros(len(numbers), np.bool_)
    for i in range(len(numbers)):
        away[i] = old_y[i] < np.inf and (now.block_of[numbers[i]] < 0 or now.x[numbers[i]] != old_x[i])
    left = np.flatnonzero(away)
    left = left[np.argsort(old_x[left])]
    count = now.meta[OBJECTS] + len(left)
    number, x, tie = np.empty(count, np.int32), np.empty(count), np.empty(count)
    y, place = np.empty((2, count)), np.full((2, len(now.x)), NONE, np.int32)
    at, gone, left_at = 0, 0, np.empty(len(left), np.int64)
    for position in range(now.meta[BLOCKS]):
        block = now.order[position]
        for j in range(now.size[block]):
            member = now.member[block, j]
            while gone < len(left) and old_x[left[gone]] < now.x[member]:
                left_at[gone] = at
                at, gone = at + 1, gone + 1
            number[at], x[at], y[WAS, at], y[NOW, at] = member, now.x[member], now.y[member], now.y[member]
            place[WAS, member], place[NOW, member] = at, at
            at += 1
    left_at[gone:] = np.arange(at, count)
    for i in range(len(numbers)):
        here = place[NOW, numbers[i]]
        if here >= 0:
            y[WAS, here] = np.inf if away[i] else old_y[i]
    for gone in range(len(left)):
        i, at = left[gone], left_at[gone]
        number[at], x[at], y[WAS, at], y[NOW, at] = numbers[i], old_x[i], old_y[i], np.inf
        place[WAS, numbers[i]] = at
    for q in range(count):
        tie[q] = now.tie[number[q]]
    least = _least(y)
    return Line(number, x, tie, y, least, _least(least), place)


@kernel
def _least(y: Float64) -> Float64:
    found = np.full((2, (y.shape[1] + GROUP - 1) >> SHIFT), np.inf)
    for time in range(2):
        for q in range(y.shape[1]):
            found[time, q >> SHIFT] = min(found[time, q >> SHIFT], y[time, q])
    return found


@borrowing_kernel
def skipped(line: Line, time: int, q: int, side: int, height: float) -> int:
    """The next place on that side whose group may have somebody at the height or above; a group is left out from its rim alone."""
    rim = GROUP - 1 if side < 0 else 0
    while 0 <= q < len(line.x) and (q & (GROUP - 1)) == rim and line.least[time, q >> SHIFT] > height:
        group = q >> SHIFT
        far = (group & (GROUP - 1)) == rim and line.lowest[time, group >> SHIFT] > height
        q += side * GROUP * (GROUP if far else 1)
    return q


@borrowing_kernel
def beside(line: Line, place: int, side: int) -> int:
    """Where a walk begins: who has the same x is in the west."""
    x, last = line.x, place
    while last + 1 < len(x) and x[last + 1] == x[place]:
        last += 1
    return last if side < 0 else last + 1


@borrowing_kernel
def places_above(
    line: Line, time: int, place: int, side: int, height: float, mark: float, without: int, k: int, found: Int32
) -> int:
    """How many objects beside a place rank before (height, mark), at most k; their places are in `found`, nearest first. Who
    stands at `without` does not count. [range-topk, section II-B, firstk]"""
    y, tie = line.y[time], line.tie
    count, q = 0, skipped(line, time, beside(line, place, side), side, height)
    while 0 <= q < len(y):
        if y[q] <= height and (y[q] < height or tie[q] < mark) and q != without:
            found[count] = q
            count += 1
            if count == k:
                break
        q += side
        if (q & (GROUP - 1)) == (GROUP - 1 if side < 0 else 0):
            q = skipped(line, time, q, side, height)
    return count


@borrowing_kernel
def places_above_twice(
    line: Line, place: int, side: int, height: float, mark: float, k: int, was: Int32, now: Int32
) -> tuple[int, int]:
    """`places_above` before and after, in one walk: most objects stand where they stood."""
    old, new, tie = line.y[WAS], line.y[NOW], line.tie
    before, after, q = 0, 0, beside(line, place, side)
    while 0 <= q < len(tie) and (before < k or after < k):
        if before < k and old[q] <= height and (old[q] < height or tie[q] < mark):
            was[before] = q
            before += 1
        if after < k and new[q] <= height and (new[q] < height or tie[q] < mark):
            now[after] = q
            after += 1
        q += side
        if (q & (GROUP - 1)) == (GROUP - 1 if side < 0 else 0):
            one, other = skipped(line, WAS, q, side, height), skipped(line, NOW, q, side, height)
            q = max(one, other) if side < 0 else min(one, other)
    return before, after


@borrowing_kernel
def mark_exposed(line: Line, place: int, height: float, limit: float, k: int, seen: Float64, exposed: Int64) -> int:
    """Mark who, as things stand now, is among the best k of a range with this place and ranks from `height` to `limit`; how many.

    Walking off, whoever has not k better ones behind is among the best k of the range walked. `above` of those behind rank above
    the height, `seen` has the heights of the best others, ascending, so that `above` and they are k at most."""
    y, count = line.y[NOW], 0
    for side in (-1, 1):
        above, others = 0, 0
        q = beside(line, place, side)
        while 0 <= q < len(y) and above < k:
            if y[q] < height:
                above += 1
                others = min(others, k - above)
            elif y[q] <= limit and y[q] < np.inf and (above + others < k or y[q] <= seen[others - 1]):
                exposed[line.number[q]] += 1
                count += 1
                j = min(others, k - above - 1)
                while j > 0 and seen[j - 1] > y[q]:
                    seen[j] = seen[j - 1]
                    j -= 1
                seen[j] = y[q]
                others = min(others + 1, k - above)
            q += side
            if (q & (GROUP - 1)) == (GROUP - 1 if side < 0 else 0):
                q = skipped(line, NOW, q, side, limit if above + others < k or not others else min(limit, seen[others - 1]))
    return count
