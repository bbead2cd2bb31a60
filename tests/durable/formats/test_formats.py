"""A folder that an earlier release wrote is opened by every later one, and answers as it did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import tidings as td
from tests.durable.formats.make import answers

FORMATS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "answers.json").is_file())
TOPICS = ("plain", "keyed", "windows")


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("folder", FORMATS, ids=lambda path: path.name)
def test_a_folder_of_an_earlier_release_answers_as_it_did(folder, name, tmp_path):
    shutil.copytree(folder / name, tmp_path / name)
    expected = json.loads((folder / "answers.json").read_text())[name]
    with td.open(tmp_path / name) as topic:
        assert asked(topic, expected) == expected
        topic.merge()
        assert asked(topic, expected) == expected
    with td.open(tmp_path / name, mode="r") as topic:
        assert asked(topic, expected) == expected


def asked(topic, expected):
    """What the release that wrote the format could be asked."""
    return {question: answer for question, answer in answers(topic).items() if question in expected}
