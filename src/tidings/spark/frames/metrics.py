"""What a streaming transform tells of itself: its name in Spark's UI and plans, and figures in StreamingQueryProgress.

The figures are under `observedMetrics` by the transform's name, as "tidings match offers". A query may not have two metrics of one
name, so a second transform of the same name in this process has a number after it.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import Column, DataFrame

from tidings.durable.snapshots import Snapshots

MANIFEST = "_manifest"
"""A column that answers of a stream have until they were observed: the number of the manifest that they were found in."""

_given: Counter[str] = Counter()


def called(transform: str, topic: Snapshots) -> str:
    """The name of a transform of a topic, as "tidings match offers"."""
    return f"tidings {transform} {topic.newest().topic}"


def titled(name: str) -> str:
    """A title for this name that no metric of this process has."""
    _given[name] += 1
    return name if _given[name] == 1 else f"{name} ({_given[name]})"


def observed(frame: DataFrame, title: str, **figures: Column) -> DataFrame:
    """The frame; of a stream, with these figures of each micro-batch in the query's progress."""
    return frame.observe(title, *(figure.alias(name) for name, figure in figures.items())) if frame.isStreaming else frame
