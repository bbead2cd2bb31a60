"""A topic in numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.topic.topic import Topic


def topic_stats(topic: Topic) -> dict[str, Any]:
    """Counts and bytes; `blocks`, `candidates` and `matches` of a home are sums over all matching since it was made.

    `matching` is of the topic since it was opened: clauses that were verified exactly and those that held, an event.
    """
    with topic.store.lock:
        snapshot, memtable = topic.store.snapshot, len(topic.store.memtable)
        work, tree = replace(topic.store.work), topic.store.memtable.stats
    segments: list[dict[str, Any]] = [
        {
            "subscriptions": len(segment),
            "live": len(segment) - segment.dead,
            "clauses": segment.clause_count,
            "bytes": segment.nbytes,
            "homes": {
                name: {"clauses": len(home), "bytes": home.nbytes, **home.stats._asdict()} for name, home in segment.homes.items()
            }
            | {name: {"clauses": len(kept), "bytes": kept.nbytes} for name, kept in segment.kept.items()},
        }
        for segment in snapshot.segments
    ]
    homes = [(name, home) for segment in segments for name, home in segment["homes"].items()]
    work.add(tree["verified"], tree["matches"])
    for _, home in homes:
        work.add(home.get("candidates", 0), home.get("matches", 0))
    asked = max(work.events, 1)
    return {
        "topic": topic.name,
        "subscriptions": memtable + sum(segment["live"] for segment in segments),
        "memtable": memtable,
        "segments": segments,
        "homes": {name: sum(home["clauses"] for other, home in homes if other == name) for name in dict(homes)},
        "matching": {
            "events": work.events,
            "candidates an event": work.candidates / asked,
            "matches an event": work.matches / asked,
        },
        "bytes": sum(segment["bytes"] for segment in segments),
        "events": len(topic.publisher.events),
        "published": topic.publisher.windows.publications,
        "similarity": topic.store.similar.stats(),
        "near": topic.publisher.near.stats(),
        "change": snapshot.seq,
    }
