"""A topic in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.engine.topic import Topic


def topic_stats(topic: Topic) -> dict[str, Any]:
    """Counts and bytes; `blocks`, `candidates` and `matches` of a home are sums over all matching since it was made."""
    with topic.store.lock:
        snapshot, memtable = topic.store.snapshot, len(topic.store.memtable)
    segments: list[dict[str, Any]] = [
        {
            "subscriptions": len(segment),
            "live": len(segment) - segment.dead,
            "clauses": segment.clause_count,
            "bytes": segment.nbytes,
            "homes": {
                name: {"clauses": len(home), "bytes": home.nbytes, **home.stats._asdict()} for name, home in segment.homes.items()
            },
        }
        for segment in snapshot.segments
    ]
    return {
        "topic": topic.name,
        "subscriptions": memtable + sum(segment["live"] for segment in segments),
        "memtable": memtable,
        "segments": segments,
        "bytes": sum(segment["bytes"] for segment in segments),
        "events": len(topic.publisher.events),
        "published": topic.publisher.windows.publications,
        "similarity": topic.similar.stats(),
        "near": topic.publisher.near.stats(),
        "change": snapshot.seq,
    }
