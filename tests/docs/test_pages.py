"""Pages: every Python block is run, every page has its place in the navigation, and what is public is on the API's pages."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docs import conftest
from docs.generate_navigation import generated

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_python_block_is_an_example_that_the_tests_run(page):
    for language, block in FENCE.findall(page.read_text()):
        if language in ("python", "py", "pycon"):
            assert block.lstrip().startswith(">>> "), "a block of Python is written with prompts, and so is run"
            assert block.endswith("\n\n"), "an empty line before the fence ends what is expected"


def test_pages_are_collected_by_their_kind():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert "docs" in settings["testpaths"]
    assert "--doctest-glob='*.md'" in settings["addopts"]
    for name in (*conftest.SERVED, *conftest.ON_SPARK):
        assert (DOCS / name).is_file()


def test_every_page_has_its_place_in_the_navigation():
    """`make docs` gives recipes theirs."""
    told = tomllib.loads(generated())["project"]["nav"]
    placed = list(places(told))
    assert len(placed) == len(set(placed))
    assert {str(page.relative_to(DOCS)) for page in PAGES} == set(placed)


def places(entries: list[dict[str, Any]]) -> Any:
    for entry in entries:
        for place in entry.values():
            if isinstance(place, str):
                yield place
            else:
                yield from places(place)


@pytest.mark.parametrize("module", ["tidings", "tidings.spark"])
def test_what_is_public_is_on_the_pages_of_the_api(module):
    told = set(re.findall(r"^::: (\S+)$", "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md")), re.MULTILINE))
    # Read, not imported: the names of tidings.spark are known without Spark.
    tree = ast.parse((ROOT / "src" / module.replace(".", "/") / "__init__.py").read_text())
    (names,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert {f"{module}.{name}" for name in names if not name.startswith("__")} <= told


def test_every_member_that_a_page_of_the_api_names_is_there():
    page = (DOCS / "api" / "topic.md").read_text()
    topic = importlib.import_module("tidings").Topic
    assert [name for name in re.findall(r"^        - (\w+)$", page, re.MULTILINE) if not callable(getattr(topic, name, None))] == []
