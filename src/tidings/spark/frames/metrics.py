"""What a streaming transform tells of itself: its name in Spark's UI and plans, and figures in StreamingQueryProgress.

The figures are under `observedMetrics` by the transform's name, as "tidings match offers". A query may not have two metrics of one
name, so a second transform of the same name in this process has a number after it.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import Column, DataFrame

from tidings.durable.snapshots import Snapshots

_given: Counter[str] = Counter()


def called(transform: str, topic: Snapshots) -> str:
    """The name of a transform of a topic, as "tidings match offers"."""
    return f"tidings {transform} {topic.newest().topic}"


def observed(frame: DataFrame, name: str, **figures: Column) -> DataFrame:
    """The frame, with these figures of each micro-batch in the query's progress."""
    if not frame.isStreaming:
        return frame
    _given[name] += 1
    once = name if _given[name] == 1 else f"{name} ({_given[name]})"
    return frame.observe(once, *(figure.alias(title) for title, figure in figures.items()))
