"""A topic in numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidings.match.store.store import Store
from tidings.topic.publisher import Publisher

WORST = 5


def topic_stats(name: str, store: Store, publisher: Publisher) -> dict[str, Any]:
    """Counts and bytes; `blocks`, `candidates` and `matches` of a home are sums over all matching since it was made.

    `matching` is of the topic since it was opened: clauses that were verified exactly and those that held, an event.
    """
    with store.lock:
        snapshot, memtable = store.snapshot, len(store.memtable)
        work, fresh = replace(store.work), store.memtable.work
    segments: list[dict[str, Any]] = [
        {
            "subscriptions": len(live),
            "live": live.living,
            "clauses": live.segment.clause_count,
            "bytes": live.nbytes,
            "homes": {
                place: {"clauses": len(home), "bytes": home.nbytes, **home.stats._asdict()}
                for place, home in live.segment.homes.items()
            }
            | {place: {"clauses": len(kept), "bytes": kept.nbytes} for place, kept in live.segment.kept.items()},
        }
        for live in snapshot.segments
    ]
    homes = [home for segment in segments for home in segment["homes"].items()]
    work.add(fresh.candidates, fresh.matches)
    for _, home in homes:
        work.add(home.get("candidates", 0), home.get("matches", 0))
    asked = max(work.events, 1)
    return {
        "topic": name,
        "subscriptions": memtable + sum(segment["live"] for segment in segments),
        "memtable": memtable,
        "segments": segments,
        "merges": store.merges,
        "homes": {one: sum(home["clauses"] for other, home in homes if other == one) for one in dict(homes)},
        "matching": {
            "events": work.events,
            "candidates an event": work.candidates / asked,
            "matches an event": work.matches / asked,
        },
        "bytes": sum(segment["bytes"] for segment in segments),
        "events": len(publisher.events),
        "published": publisher.windows.publications,
        "similarity": store.similar.stats(),
        "near": publisher.near.stats(),
        "without an answer": failures_of(store, publisher),
        "change": snapshot.seq,
    }


def failures_of(store: Store, publisher: Publisher) -> dict[str, Any]:
    """How often a filter, a score or a `by` had no finite answer, since the topic was opened: in all, and of the WORST."""
    failures = store.failures + publisher.ranked.failures
    return {"times": failures.total(), "subscriptions": len(failures), "worst": dict(failures.most_common(WORST))}
