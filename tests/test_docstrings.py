"""What stands as an example in a docstring is run."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["tidings.match.answers.results", "tidings.model.values.schema", "tidings.topic.subscribing", "tidings.topic.topic"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
