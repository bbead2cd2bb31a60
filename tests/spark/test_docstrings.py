"""The examples of `tidings.spark` are run, on a real local Spark."""

from __future__ import annotations

import pytest

from tests.public import run_example, shown
from tests.spark.samples import SPARK

pytestmark = [*SPARK, pytest.mark.deep]
NAMES = {name: thing for name, thing in shown("spark").items() if name != "tidings.spark.paint"}
"""All but what needs a broker: tests/spark/transforms/test_paint.py runs that."""


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_right(name, spark, tmp_path):
    run_example(name, NAMES[name], {"spark": spark, "folder": str(tmp_path)})
