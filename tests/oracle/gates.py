"""What a subscription with a pace hears, from the whole history of what it would have been told without one.

Every answer is computed from the beginning: `heard` walks the instants in order, at each first what time brings, then what was
told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.windows import period_end

HOUR = 3_600_000_000
Told = tuple[str, float, int | None, str, int]
"""(event, score, rank, why, at)"""
Digest = tuple[tuple[str, float, int], ...]
"""(event, score, at) of each that is told together"""


@dataclass
class GateOracle:
    keyed: bool
    k: int | None = None
    budget: tuple[int, str] | None = None
    cooldown: int | None = None
    dwell: int | None = None
    digest: str | None = None
    tz: str = "UTC"
    per: bool = False
    expires: int | None = None
    history: list[tuple[Told, object]] = field(default_factory=list)
    """what was told, and the value by which it is grouped"""
    given: int = 0

    def heard(self, until: int) -> list[tuple[Told, Digest]]:
        """What is new up to and including an instant."""
        everything = self._everything(until)
        new, self.given = everything[self.given :], len(everything)
        return new

    def _everything(self, until: int) -> list[tuple[Told, Digest]]:
        if self.digest is not None:
            return self._digests(until)
        wanted: list[tuple[int, int, Any, Told, object]] = self._dwelt(until)
        wanted += [(told[4], 1, n, told, group) for n, (told, group) in enumerate(self.history)]
        wanted.sort(key=lambda each: each[:3])
        passed: list[tuple[Told, object]] = []
        for at, _, _, told, group in wanted:
            if self.expires is not None and at >= self.expires:
                continue
            alike = [other for other, of in passed if not self.per or of == group]
            quiet = self.cooldown is not None and any(at < other[4] + self.cooldown for other in alike)
            same = [other for other, _ in passed if self.budget and self._period(other[4]) == self._period(at)]
            if not quiet and not (self.budget and len(same) >= self.budget[0]):
                passed.append((told, group))
        return [(told, ()) for told, _ in passed]

    def _period(self, at: int) -> int:
        assert self.budget is not None
        return at // HOUR if self.budget[1] == "hour" else period_end(at, self.budget[1], self.tz)

    def _dwelt(self, until: int) -> list[tuple[int, int, Any, Told, object]]:
        """Of each stay, from its first notification to `left`, the instant at which it has lasted so long."""
        found = []
        for n, (told, group) in enumerate(self.history):
            earlier = [other for other, _ in self.history[:n] if other[0] == told[0]]
            if self.dwell is None or told[3] == "left" or (earlier and earlier[-1][3] != "left"):
                continue
            due, score = told[4] + self.dwell, told[1]
            later = [other for other, _ in self.history[n + 1 :] if other[0] == told[0]]
            stay = later[: next((i for i, other in enumerate(later) if other[3] == "left"), len(later))]
            ended = len(stay) < len(later) and later[len(stay)][4] < due
            for other in stay:
                score = other[1] if other[4] < due else score
            if not ended and due <= until:
                found.append(
                    (due, 0, sum(other[4] < due for other, _ in self.history), (told[0], score, None, "dwelt", due), group)
                )
        return sorted(found, key=lambda each: (each[0], each[3][0]))

    def _digests(self, until: int) -> list[tuple[Told, Digest]]:
        digests: dict[int, list[tuple[Told, object]]] = {}
        for told, group in self.history:
            period = digests.setdefault(self._due(told[4]), [])
            if self.keyed:
                period[:] = [entry for entry in period if entry[0][0] != told[0]]
            if told[3] != "left":
                period.append((told, group))
        answers: list[tuple[Told, Digest]] = []
        for due, kept in sorted(digests.items()):
            best: list[Told] = []
            groups: list[object] = []
            for told, group in sorted(kept, key=lambda entry: (-entry[0][1], entry[0][4], entry[0][0])):
                if told[0] in {other[0] for other in best}:
                    continue
                if not self.per or group is None or group not in groups:
                    groups.append(group)
                    best.append(told)
            best = best[: self.k]
            if best and due <= until and (self.expires is None or due < self.expires):
                first = (best[0][0], best[0][1], None, "digest", due)
                answers.append((first, tuple((event, score, at) for event, score, _, _, at in best)))
        return answers

    def _due(self, at: int) -> int:
        assert self.digest is not None
        if not self.digest.startswith("at "):
            return period_end(at, self.digest, self.tz)
        zone, (hour, minute) = ZoneInfo(self.tz), map(int, self.digest.removeprefix("at ").split(":"))
        local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(zone)
        for days in range(3):
            due = datetime(local.year, local.month, local.day, hour, minute, tzinfo=zone) + timedelta(days=days)
            instant = round(due.timestamp() * 1_000_000)
            if instant > at:
                return instant
        raise AssertionError
