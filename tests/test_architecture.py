"""ARCHITECTURE.md says what is there: the drawing is of the imports as they are, walks name files that exist, every room has a
page.
"""

from __future__ import annotations

import ast
import re

import pytest

from docs.generate_architecture import PAGE, ROOT, SOURCE, with_drawing

FOLDERS = sorted(path.parent for path in SOURCE.rglob("__init__.py"))


def test_the_drawing_is_of_the_imports_as_they_are():
    assert PAGE.read_text() == with_drawing(PAGE.read_text()), "stale: run 'make docs'"


def test_every_file_that_a_walk_names_is_there():
    named = re.findall(r"`((?:src|tests|docs|benchmarks|experiments)?/?[\w/]+\.py)`", PAGE.read_text())
    assert named
    missing = [name for name in named if not (SOURCE / name).is_file() and not (ROOT / name).is_file()]
    assert not missing


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_says_what_it_answers_and_holds_some_twenty_files(folder):
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert said is not None
    assert len(said) > 60
    assert len([*folder.glob("*.py")]) <= 22
