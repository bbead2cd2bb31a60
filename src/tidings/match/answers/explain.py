"""Why: what matching did with an event, and why a subscription does or does not hear of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from tidings.match.answers.ordering import match_list
from tidings.match.answers.relaxed import RelaxedSegment
from tidings.match.answers.vague_events import vague_list
from tidings.match.answers.wording import place_in_words, range_in_words, ranking_in_words, value_in_words
from tidings.match.store.ranked_paths import Question, plan_for
from tidings.match.store.reader import Encoded, Reader
from tidings.model.columns.arrays import MISSING_BOX, NO_BOX, EventColumns
from tidings.model.door.event import Event
from tidings.model.door.subscription import Subscription
from tidings.model.filter.clause import Clause, Values
from tidings.model.values.schema import Schema
from tidings.model.values.vague import Uncertain, worlds
from tidings.rank.similarity import spatial_part

MEMTABLE, SIMILAR = "memtable", "similar"
NO_SCORE = "its score has no finite value for this event"


@dataclass(frozen=True, slots=True)
class Explanation:
    """`reason` is the first predicate that fails, clause by clause; None when the subscription matches.

    `home` is the access path that holds each clause, `reached` whether the event came upon the clause there (its word's list, its
    block), so that the rest of it was looked at; the memtable is reached by what it gives as an answer. `steps` counts what each
    step of matching left over, and `plans` says of each segment how it would find the k best, exact and relaxed, with the price of
    each way. `failures` is how often the subscription's filter, score or `by` had no finite answer so far. `held` and `failed` are
    what the clause that matched, or came nearest, asks for, part by part, with what the event has. `hears` is what beside its
    filter decides what the subscription is told, in words.

    >>> import tidings as td
    >>> deals = td.Topic("deals", {"price": td.Number()})
    >>> notes = deals.subscribe("ann", "price < 5")
    >>> told = deals.explain({"id": "e1", "price": 9}, "ann")
    >>> told.matched, told.reason
    (False, 'price is 9, wanted below 5')
    """

    event: str
    subscription: str | None = None
    matched: bool = False
    reason: str | None = None
    score: float | None = None
    score_parts: dict[str, float] = field(default_factory=dict)
    home: tuple[str, ...] = ()
    reached: tuple[bool, ...] = ()
    steps: dict[str, int] = field(default_factory=dict)
    plans: tuple[str, ...] = ()
    failures: int = 0
    held: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    hears: str = ""

    def __str__(self) -> str:
        return f"{self._said()} (without a finite answer {self.failures} times so far)" if self.failures else self._said()

    def _said(self) -> str:
        if self.subscription is None:
            steps = ", ".join(f"{count} {name}" for name, count in self.steps.items())
            return "\n".join([f"event {self.event!r}: {steps}", *self.plans])
        if not self.matched:
            return f"{self.subscription!r} does not match event {self.event!r}: {self.reason}"
        parts = " + ".join(f"{value:g} ({name})" for name, value in self.score_parts.items())
        heard = f"; it hears {self.hears}" if self.hears else ""
        said = f"{self.subscription!r} matches event {self.event!r}, score {self.score:g} = {parts}"
        return f"{said}; home {', '.join(self.home)}{heard}"


def explain_pair(reader: Reader, columns: EventColumns, event: Event, subscription: Subscription, time: int) -> Explanation:
    if subscription.similarity is not None:
        return explain_similar(reader, columns, event, subscription, subscription.similarity, time)
    homes, reached = locate(reader, columns, subscription.id)
    reasons = [failure(reader.schema, clause, event.values) for clause in subscription.clauses]
    if not subscription.is_live(time):
        reasons = ["it has expired"]
    if not subscription.clauses:
        reasons = ["its filter can never match"]
    score = subscription.score_of(event.values)
    if not math.isfinite(score):
        reasons.append(NO_SCORE)
    matched = None in reasons and math.isfinite(score)
    holds, fails = nearest(reader.schema, subscription.clauses, event.values)
    parts = {"base": subscription.score}
    parts |= {f"{c:g} * {name}": c * event.values[name] for name, c in subscription.terms.items() if name in event.values}
    return Explanation(
        event=event.id,
        subscription=subscription.id,
        matched=matched,
        reason=None if matched else "; ".join(reason for reason in reasons if reason is not None),
        score=score if matched else None,
        score_parts=parts if matched else {},
        home=homes,
        reached=reached,
        held=holds,
        failed=fails,
        hears=ranking_in_words(subscription),
    )


def explain_similar(
    reader: Reader, columns: EventColumns, event: Event, s: Subscription, similarity: tuple[float, float], time: int
) -> Explanation:
    """Of a subscription that goes by similarity: its score in parts, or why it is too low."""
    alpha, theta = similarity
    hits = reader.by_similarity(columns, lambda _: event.values, time)
    score = next((m.score for m in match_list(event.id, [*hits]) if m.subscription == s.id), None)
    others = [failure(reader.schema, clause.others(), event.values) for clause in s.clauses]
    reason = "it has expired" if not s.is_live(time) else next((o for o in others if o is not None), None)
    home = (SIMILAR,) * len(s.clauses)
    if score is None:
        reason = reason or f"the similarity is below {theta:g}"
        return Explanation(event.id, s.id, reason=reason, home=home, reached=(False,) * len(s.clauses))
    place = np.array(event.values.get(reader.schema.place or "", MISSING_BOX))
    boxes = np.array([NO_BOX if clause.box is None else clause.box for clause in s.clauses])
    shares = [alpha * spatial_part(boxes, i, place) for i in range(len(boxes)) if others[i] is None]
    parts = {"place": shares[0], "words": score - shares[0]} if len(shares) == 1 else {"its best clause": score}
    return Explanation(event.id, s.id, True, None, score, parts, home, (True,) * len(s.clauses))


def failure(schema: Schema, clause: Clause, values: Values) -> str | None:
    """The first predicate of a clause that fails, in words."""
    name = clause.first_failure(schema, values)
    if name is None:
        return None
    if name not in schema:
        return f"{name} does not hold"
    if name in clause.nulls:
        return f"{name} must be missing and is {values[name]!r}"
    if name not in values:
        return f"{name} is missing"
    return f"{name} is {value_in_words(schema, name, values[name])}, wanted {wanted(schema, clause, name)}"


def held(schema: Schema, clause: Clause, values: Values) -> tuple[str, ...]:
    """The predicates of a clause that holds, in words."""
    said = [
        f"{name} is {value_in_words(schema, name, values[name])}, wanted {wanted(schema, clause, name)}"
        for name in (*clause.ranges, *clause.within, *clause.without)
    ]
    if clause.box is not None and schema.place is not None:
        said.append(f"{schema.place} {place_in_words(values[schema.place])} touches its box")
    if clause.words:
        said.append(f"{schema.words} has {', '.join(sorted(clause.words))}")
    said += [f"{name} is missing" for name in sorted(clause.nulls)] + [f"{name} is there" for name in sorted(clause.present)]
    return (*said, *(residue.source for residue in clause.residue))


def nearest(schema: Schema, clauses: Sequence[Clause], values: Values) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the clause of which the fewest parts fail: what holds and what fails, in words."""
    cuts = [[(part, failure(schema, part, values)) for part in clause.by_attribute(schema).values()] for clause in clauses]
    cut = min(cuts, key=lambda parts: sum(said is not None for _, said in parts), default=[])
    holds = [held(schema, part, values) for part, said in cut if said is None]
    return tuple(chain.from_iterable(holds)), tuple(said for _, said in cut if said is not None)


def wanted(schema: Schema, clause: Clause, name: str) -> str:
    if name in clause.ranges:
        return range_in_words(schema, name, *clause.ranges[name])
    if name in clause.within:
        return "one of " + ", ".join(sorted(clause.within[name]))
    if name in clause.without:
        return "none of " + ", ".join(sorted(clause.without[name]))
    if name == schema.place and clause.box is not None:
        return f"to touch {place_in_words(clause.box)}"
    return "all of " + ", ".join(sorted(clause.words))


def locate(reader: Reader, columns: EventColumns, id: str) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The home of each clause of a subscription, and whether the event reaches the clause there."""
    live, ordinal = reader.find(id)
    if live is None:
        assert reader.memtable is not None
        reached = reader.memtable.reached(columns, id)
        return (MEMTABLE,) * len(reached), reached
    segment = live.segment
    found = [segment.home_of(clause) for clause in segment.clauses_of(ordinal)]
    return tuple(name for name, _ in found), tuple(segment.homes[name].reached(columns, 0, slot) for name, slot in found)


def explain_event(reader: Reader, columns: EventColumns, event: Event, time: int, k: int) -> Explanation:
    """How many clauses there are, how many each home verified for the event, and how many subscriptions were left."""
    steps = {"subscriptions": len(reader), "in the memtable": 0 if reader.memtable is None else reader.memtable.living}
    plans = [] if reader.memtable is None else ["memtable: all matches, then the k best"]
    for live in reader.snapshot.segments:
        plans.append(str(plan_for(live, Question(columns, lambda _: event.values, k, reader.snapshot.seq))))
        relaxed = live.made_aside(RelaxedSegment)
        plans += [] if relaxed is None else [relaxed.explained(k)]
        for name, home in live.segment.homes.items():
            before = home.stats
            home.match_batch(columns, live.died, reader.snapshot.seq - live.segment.born)
            for label, count in home.stats._asdict().items():
                key = f"{name}: {label}"
                steps[key] = steps.get(key, 0) + count - getattr(before, label)
    hits = reader.match(Encoded(columns, lambda _: event.values), at=time)
    steps["matches"] = sum(len(found.event) for found in hits)
    return Explanation(event=event.id, steps=steps, plans=tuple(plans))


def explain_vague(reader: Reader, event: Event, subscription: Subscription | None, time: int) -> Explanation:
    """Of an event with ranges or uncertain values: in which worlds a subscription matches, and what each adds to its score."""
    ways = list(worlds(event.values))
    if subscription is None:
        matches = len(vague_list(reader, event, None, time))
        steps = {"subscriptions": len(reader), "worlds": len(ways), "matches": matches}
        return Explanation(event=event.id, steps=steps, plans=("every world in full, then the k best by expected score",))
    parts, reasons = {}, []
    for chance, values in ways:
        found = [failure(reader.schema, clause, values) for clause in subscription.clauses]
        world = ", ".join(f"{name} {values[name]}" for name, value in event.values.items() if isinstance(value, Uncertain))
        score = subscription.score_of(values)
        if None in found and subscription.is_live(time) and math.isfinite(score):
            parts[f"{chance:g}: {world}" if world else "base"] = chance * score
        elif None in found and subscription.is_live(time):
            reasons.append(NO_SCORE)
        reasons += [reason for reason in found if reason is not None]
    return Explanation(
        event=event.id,
        subscription=subscription.id,
        matched=bool(parts),
        reason=None if parts else "; ".join(dict.fromkeys(reasons)) or "it has expired, or its filter can never match",
        score=sum(parts.values()) if parts else None,
        score_parts=parts,
    )
