"""Paint-Batch as printed (range-topk, section IV-A), watcher by watcher from the definitions, to see what it delivers.

An influence region is asked for as "does the object rank within k for this watcher".
"""

from __future__ import annotations

import math


def rank(objects, watcher, number, y):
    """The rank that `number` has, or would have with height y, among the objects in the watcher's range."""
    l, r = watcher
    return 1 + sum((v, n) < (y, number) for n, (x, v) in objects.items() if n != number and l <= x <= r)


def printed_batch(objects, batch, watchers, k):
    """Change heights in `objects` ({number: (x, y)}) as `batch` ({number: y}) says. For each watcher the objects told, in order."""
    told = [[] for _ in watchers]
    falling = {n: y for n, y in batch.items() if y < objects[n][1]}
    rising = {n: y for n, y in batch.items() if y > objects[n][1]}
    state = {n: (x, falling.get(n, y)) for n, (x, y) in objects.items()}
    before_rising = dict(state)
    discarded, waiting = set(), set(rising)
    for number in sorted(rising, key=lambda n: (rising[n], n), reverse=True):
        (x, old), new = state[number], rising[number]
        waiting.discard(number)
        for w, (l, r) in enumerate(watchers):
            if not l <= x <= r:
                continue
            region = rank(state, watchers[w], number, old) <= k
            if number in discarded:
                region = rank(state, watchers[w], number, new) <= k or rank(before_rising, watchers[w], number, old) <= k
            if region:
                told[w].append((number, new))
            lost = rank(state, watchers[w], number, old) <= k < rank(state, watchers[w], number, new)
            if lost:
                others = sorted((v, n) for n, (at, v) in state.items() if n != number and l <= at <= r)
                height, exposed = others[k - 1]
                if exposed in waiting or exposed in falling:
                    discarded.add(exposed)
                else:
                    told[w].append((exposed, height))
        state[number] = (x, new)
    for number in sorted(falling, key=lambda n: falling[n]):
        for w, (l, r) in enumerate(watchers):
            if l <= state[number][0] <= r and rank(state, watchers[w], number, falling[number]) <= k:
                told[w].append((number, falling[number]))
    return state, told


def follow(held, news, k):
    """The protocol of section II-A: a list {number: y} after its news."""
    for number, y in news:
        held = {**held, number: y}
        held = dict(sorted(held.items(), key=lambda item: (item[1], item[0]))[:k])
    return {n: y for n, y in held.items() if y < math.inf}
