"""What `match` did to make a DataFrame, for `notify`, which then does both in one Python stage.

A match is several times as large as what becomes of it: packed for the windows in the worker that found it, it never crosses the
JVM. Whoever changes the matches in between, by a filter or a column, has another DataFrame, of which nothing is known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from tidings.durable.snapshots import Snapshots
from tidings.spark.frames.arrow_stage import Stage
from tidings.spark.frames.parquet_files import Given


@dataclass
class Matching:
    """`title` is that of its metrics; `corrupt`, whether refused events are among the matches."""

    given: Given
    stage: Stage
    only: list[str]
    topic: Snapshots
    title: str
    corrupt: bool
    uses: int = 0
    """how many plans have taken its place"""


_made: WeakKeyDictionary[DataFrame, Matching] = WeakKeyDictionary()


def remember(matches: DataFrame, how: Matching) -> None:
    _made[matches] = how


def matching_of(matches: DataFrame) -> Matching | None:
    return _made.get(matches)
