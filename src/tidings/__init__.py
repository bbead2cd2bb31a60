"""tidings: a ranked publish/subscribe engine."""

from importlib.metadata import version

from tidings import errors
from tidings.engine.durable import open_topic as open
from tidings.engine.results import Match, Notification
from tidings.engine.topic import Topic
from tidings.model.schema import Category, Number, Place, Schema, Time, Words
from tidings.model.vague import Between, Uncertain

__version__ = version("tidings")
__all__ = [
    "Between",
    "Category",
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
    "errors",
    "open",
]
