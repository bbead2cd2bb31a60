"""What several test files share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Java runs in a test is over soon: compiling it well, or collecting garbage beside it, costs more than it saves.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One real local Spark for the whole run."""
    from tidings.spark import session

    local = str(tmp_path_factory.mktemp("spark"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session("tidings-tests", "local[2]", {"spark.sql.shuffle.partitions": "2", "spark.local.dir": local})
    yield made
    made.stop()
