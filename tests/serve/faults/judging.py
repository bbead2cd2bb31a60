"""What must be heard, from the definition: who was subscribed when an event was sent, within which range.

An acknowledged change holds from its acknowledgement on; between its beginning and that, it may or may not. So an event *must* be
told to a subscription that was acknowledged before the event was sent and not given up before it was taken, and *may* be told to
one that was asked for before it was taken and not gone when it was sent. An event that was never acknowledged is told to nobody, or
to all. Clocks are the machine's one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

NEVER = float("inf")


@dataclass
class Interest:
    """Times of the request and of its answer, of its beginning and of its end."""

    owner: str
    lo: float
    hi: float
    asked: float
    made: float = NEVER
    ending: float = NEVER
    gone: float = NEVER


@dataclass
class Sent:
    """`told` if somebody heard of it, acknowledged or not."""

    price: float
    at: float
    taken: float = NEVER
    told: bool = False


class Told(NamedTuple):
    number: int
    id: str
    subscription: str
    owner: str
    event: str
    price: float


@dataclass
class Hearer:
    """`owner` whose notifications it has, None for all; `once` if nothing may come twice."""

    name: str
    owner: str | None
    once: bool
    told: list[Told]


def concerned(interest: Interest, event: Sent) -> bool:
    return interest.lo <= event.price <= interest.hi


def must_hear(interest: Interest, event: Sent) -> bool:
    return concerned(interest, event) and interest.made <= event.at and event.taken <= interest.ending


def may_hear(interest: Interest, event: Sent) -> bool:
    return concerned(interest, event) and interest.asked <= event.taken and event.at <= interest.gone


def due(interests: dict[str, Interest], events: dict[str, Sent]) -> dict[tuple[str, str], str]:
    """(subscription, event) of what must be heard, and whose it is."""
    found = {}
    for id, interest in interests.items():
        for name, event in events.items():
            if (event.told or event.taken < NEVER) and must_hear(interest, event):
                found[id, name] = interest.owner
    return found


def missing(wanted: dict[tuple[str, str], str], hearers: Iterable[Hearer]) -> dict[str, list[tuple[str, str]]]:
    """What each does not have yet."""
    found = {}
    for hearer in hearers:
        has = {(told.subscription, told.event) for told in hearer.told}
        lacks = [pair for pair, owner in wanted.items() if hearer.owner in (None, owner) and pair not in has]
        if lacks:
            found[hearer.name] = lacks
    return found


def judge(interests: dict[str, Interest], events: dict[str, Sent], hearers: list[Hearer]) -> int:
    """Raise if somebody heard what is not his, in a wrong order, or under another id; how many repeats there were."""
    ids: dict[tuple[str, str], str] = {}
    repeats = 0
    for hearer in hearers:
        last: dict[str, int] = {}
        seen: set[tuple[str, str]] = set()
        for told in hearer.told:
            pair = (told.subscription, told.event)
            interest, event = interests[told.subscription], events[told.event]
            where = f"{hearer.name}: {told}"
            assert told.owner == interest.owner, f"{where} is of owner {interest.owner}"
            assert hearer.owner in (None, told.owner), f"{where} is a stranger's"
            assert told.price == event.price, f"{where} is not the event that was sent, {event}"
            assert may_hear(interest, event), f"{where} does not concern {interest}, {event}"
            assert ids.setdefault(pair, told.id) == told.id, f"{where} came before as {ids[pair]}"
            if pair in seen:
                assert not hearer.once, f"{where} came twice"
                repeats += 1
                continue
            assert told.number > last.get(told.subscription, 0), f"{where} came after number {last[told.subscription]}"
            last[told.subscription] = told.number
            seen.add(pair)
    return repeats


def note_told(events: dict[str, Sent], hearers: Iterable[Hearer]) -> None:
    """What one has heard of, everybody must hear of, acknowledged or not."""
    for hearer in hearers:
        for told in hearer.told:
            events[told.event].told = True


def rows(fields: Iterable[list[Any]]) -> list[Told]:
    return [Told(*row) for row in fields]
