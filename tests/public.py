"""What is public, by the pages of docs/api that say so: names, and the members that they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parents[1] / "docs" / "api"
_SHOWN = re.compile(r"^::: (\S+)\n((?:[ ]+.*\n?)*)", re.M)


def shown(page: str) -> dict[str, Any]:
    """The objects of a page of docs/api, by name: those that it names, and of each the members that it lists."""
    found: dict[str, Any] = {}
    for name, options in _SHOWN.findall((PAGES / f"{page}.md").read_text()):
        found[name] = one = object_of(name)
        inline = re.search(r"members: \[(.*)\]", options)
        members = inline.group(1).split(", ") if inline else re.findall(r"^ +- (\w+)$", options, re.M)
        found |= {f"{name}.{member}": inspect.getattr_static(one, member) for member in members}
    return found


def object_of(name: str) -> Any:
    """By its whole name; the longest part of it that can be imported is a module."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def example_of(thing: Any) -> str:
    """What its own docstring says."""
    said = thing.fget.__doc__ if isinstance(thing, property) else thing.__doc__
    return inspect.cleandoc(said or "")


def run_example(name: str, thing: Any, known: Mapping[str, Any]) -> None:
    """Run what stands as an example in its docstring, where `known` is known."""
    module = inspect.getmodule(thing.fget if isinstance(thing, property) else thing)
    globs = {**vars(module), **known} if module is not None else dict(known)
    test = doctest.DocTestParser().get_doctest(example_of(thing), globs, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert test.examples, f"{name} has no example"
    assert runner.failures == 0, "".join(said)
