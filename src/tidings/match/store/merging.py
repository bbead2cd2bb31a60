"""Which segments of a store should become one.

An event pays for every segment it is matched against: about what it pays anyway for knowing its cells, and for the blocks it
reaches, of which a segment of a quarter has half as many. Who writes pays for every row of a merge. While changes come, segments
of about one size are merged eight at a time, so that a row is rewritten once for every eightfold growth, and a segment that is
mostly dead is taken up by the others. That leaves up to seven segments of every size. When changes stop, the small ones are not
left so: `due_when_quiet`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.match.store.live_segment import LiveSegment

FLUSH_AT = 4096
MERGE_WIDTH = 8
SMALL_SHARE = 8
"""The small segments are merged with the largest when they hold one in so many of what it holds."""


def due_for_merge(segments: Sequence[LiveSegment]) -> list[LiveSegment]:
    """The smallest tier that has MERGE_WIDTH members, or one that is mostly dead with all that are smaller."""
    tiers: dict[int, list[LiveSegment]] = {}
    for segment in segments:
        live = segment.living
        tiers.setdefault(tier_of(live), []).append(segment)
        if live < len(segment) // 2 and len(segment) > FLUSH_AT:
            return [segment, *(other for other in segments if other is not segment and len(other) <= len(segment))]
    full = [tiers[tier] for tier in sorted(tiers) if len(tiers[tier]) >= MERGE_WIDTH]
    return full[0] if full else []


def due_when_quiet(segments: Sequence[LiveSegment]) -> list[LiveSegment]:
    """All, if those beside the largest hold an eighth of what it holds; else those beside it, so that one of them is left."""
    if len(segments) < 2:
        return []
    *small, largest = sorted(segments, key=lambda segment: segment.living)
    if len(largest) <= FLUSH_AT:
        return []
    held = sum(segment.living for segment in small)
    if held * SMALL_SHARE >= largest.living:
        return [*small, largest]
    return small if len(small) > 1 else []


def tier_of(live: int) -> int:
    tier = 0
    while live > FLUSH_AT:
        live //= MERGE_WIDTH
        tier += 1
    return tier
