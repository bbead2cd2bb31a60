"""Everything that is public says what it is, with an example, and the example is run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import tidings as td
from tests.public import PAGES, example_of, run_example, shown
from tests.serve.conftest import serving
from tidings import spark
from tidings.serve.settings import Settings

HERE = {name: thing for page in ("topic", "types", "answers", "durable") for name, thing in shown(page).items()}
REMOTE = shown("client")
ELSEWHERE = shown("spark")
"""Run by tests/spark/test_docstrings.py."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(Settings(tmp_path_factory.mktemp("served"), open=True)) as client:
        yield str(client.base_url)


@pytest.mark.parametrize("name", HERE)
def test_an_example_is_right(name):
    run_example(name, HERE[name], {})


@pytest.mark.parametrize("name", REMOTE)
def test_an_example_of_the_client_is_right(name, url):
    run_example(name, REMOTE[name], {"url": url})


def test_every_public_name_is_shown_and_has_an_example():
    public = {f"tidings.{name}" for name in td.__all__ if name not in ("__version__", "errors")}
    public |= {f"tidings.spark.{name}" for name in spark.__all__}
    every = HERE | REMOTE | ELSEWHERE
    assert public - every.keys() == set()
    assert [name for name, thing in every.items() if ">>>" not in example_of(thing)] == []
    assert {path.stem for path in PAGES.glob("*.md")} == {
        "topic",
        "types",
        "answers",
        "durable",
        "client",
        "spark",
        "errors",
        "index",
    }


def test_what_a_topic_can_be_asked_is_shown_or_is_no_ones_business():
    """A call of `Topic` is on its page, or among these, which programs within the house use."""
    inner = {
        "change",
        "encode",
        "in_turn",
        "must_be_whole",
        "new_publisher",
        "reader_of",
        "recover",
        "take",
        "touched",
        "use",
        "vocabularies",
    }
    calls = {name for name, _ in inspect.getmembers(td.Topic) if not name.startswith("_")}
    assert calls - {name.rsplit(".", 1)[1] for name in HERE if name.startswith("tidings.Topic.")} == inner


def test_every_error_says_when_it_is_raised():
    errors = [thing for thing in vars(td.errors).values() if inspect.isclass(thing) and issubclass(thing, Exception | Warning)]
    assert len(errors) > 8
    assert [error.__name__ for error in errors if not error.__doc__] == []
