"""What several test files share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.nodeid import coerce_node_id
from hypothesis import settings

from tests.drawing import FEW, SAME, at_most, limit_to

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.daemon.module": "tests.spark.preloaded",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))),
}
"""Of a Spark that tests share: a test's rows are too few for Java to be written and compiled for them."""
# Tests judge compiled kernels from the first call on; `tests/compiling` looks at what a user has before they are there.
os.environ.setdefault("TIDINGS_KERNELS", "compiled")
# What Java runs in a test is over soon: compiling it well, or collecting garbage beside it, costs more than it saves.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--few", action="store_true", help="draw at most FEW examples of each property")


def pytest_configure(config: pytest.Config) -> None:
    same = SAME if config.getoption("--hypothesis-profile") == "ci" else None
    limit_to(FEW if config.getoption("--few") else same)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every property and state machine is run on as many examples as this run draws, whatever it says; what is long, on all."""
    for item in items:
        if item.get_closest_marker("deep") or item.get_closest_marker("soak"):
            continue
        test = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is not None:
            test._hypothesis_internal_use_settings = limited(own)
        machine = getattr(item, "cls", None)
        if isinstance(getattr(machine, "settings", None), settings):
            machine.settings = limited(machine.settings)
    if getattr(config.option, "loadgroup", False):
        keep_together(items)


def keep_together(items: list[pytest.Item]) -> None:
    """Say a test's `xdist_group` in its id, where xdist looks for it: xdist 3.8 writes it to what pytest 9.2 no longer reads."""
    for item in items:
        groups = sorted({mark.args[0] for mark in item.iter_markers("xdist_group")})
        named = f"@{'_'.join(groups)}"
        if groups and not item.nodeid.endswith(named):
            item._id = coerce_node_id(item.nodeid + named)


def limited(own: settings) -> settings:
    return settings(own, max_examples=at_most(own.max_examples))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One real local Spark for the whole run."""
    from tidings.spark import session

    local = str(tmp_path_factory.mktemp("spark"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session("tidings-tests", "local[2]", {"spark.local.dir": local, **QUICK})
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One real Chromium for a file of tests."""
    from tests.browsing import chromium

    with chromium() as found:
        yield found
