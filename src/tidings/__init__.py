"""tidings: a ranked publish/subscribe engine. What is public is named here; `tidings.spark` has the transforms of the pipeline."""

from typing import Any

from tidings import errors
from tidings.client.connecting import connect, connect_async
from tidings.durable.places import open, pull
from tidings.match.answers.results import Match, Notification
from tidings.model.values.schema import Bool, Category, Date, Number, Place, Schema, Time, Words
from tidings.model.values.vague import Between, Uncertain
from tidings.topic.topic import Topic

__all__ = [
    "Between",
    "Bool",
    "Category",
    "Date",
    "Match",
    "Notification",
    "Number",
    "Place",
    "Schema",
    "Time",
    "Topic",
    "Uncertain",
    "Words",
    "__version__",
    "connect",
    "connect_async",
    "errors",
    "open",
    "pull",
]


def __getattr__(name: str) -> Any:
    """`__version__` is read from the installation when somebody asks for it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tidings")
    raise AttributeError(f"module 'tidings' has no attribute {name!r}")
