"""What pages have when their examples are run: an empty folder to work in, and on some pages a service or a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import spark as spark
from tests.serve.running import Running

SERVED, ON_SPARK = ("client.md",), ("spark.md",)
"""Pages whose examples ask a service at `url`, and those that have a session `spark`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.path.name in ON_SPARK:
            from tests.spark.samples import SPARK

            for mark in SPARK:
                item.add_marker(mark)


@pytest.fixture(autouse=True)
def given(
    request: pytest.FixtureRequest, doctest_namespace: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    if request.node.path.name in ON_SPARK:
        doctest_namespace["spark"] = request.getfixturevalue("spark")
    if request.node.path.name not in SERVED:
        yield
        return
    (tmp_path / "topics").mkdir()
    service = Running(tmp_path / "topics").start()
    doctest_namespace["url"] = service.url
    try:
        yield
    finally:
        service.stop()
