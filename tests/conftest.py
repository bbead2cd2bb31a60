"""What several test files share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

FEW = 6
# Tests judge compiled kernels from the first call on; `tests/compiling` looks at what a user has before they are there.
os.environ.setdefault("TIDINGS_KERNELS", "compiled")
# What Java runs in a test is over soon: compiling it well, or collecting garbage beside it, costs more than it saves.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--few", action="store_true", help="draw at most FEW examples of each property")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--few` every property and state machine is run on a handful of examples, whatever it says itself."""
    if not config.getoption("--few"):
        return
    for item in items:
        test = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is not None:
            test._hypothesis_internal_use_settings = settings(own, max_examples=min(own.max_examples, FEW))
        machine = getattr(item, "cls", None)
        if isinstance(getattr(machine, "settings", None), settings):
            machine.settings = settings(machine.settings, max_examples=min(machine.settings.max_examples, FEW))


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One real Chromium for a file of tests."""
    from tests.browsing import chromium

    with chromium() as found:
        yield found
