"""tidings on Spark: transforms over DataFrames, batch and streaming, with the answers of the embedded engine.

Data walks up through the rooms: `frames` (what a task sees of a topic), `state` (what is kept between micro-batches), `parts`
(topics that outgrow a worker), `transforms` (the calls below), `job` (whole jobs). A room imports those before it, never those
after.

Three words: a *part* is a cut of a topic's subscriptions; a *shard* is a group of subscriptions whose window or board state is
one key of Spark's; a *partition* is Spark's own. docs/spark.md is for users; read `transforms.match` first to see how it is
done.
"""

from tidings.spark.frames.session import session
from tidings.spark.transforms.adopt import adopt
from tidings.spark.transforms.board import board
from tidings.spark.transforms.build import build
from tidings.spark.transforms.follow import follow
from tidings.spark.transforms.match import match
from tidings.spark.transforms.notify import notify
from tidings.spark.transforms.paint import paint
from tidings.spark.transforms.parse import parse
from tidings.spark.transforms.search import search

__all__ = ["adopt", "board", "build", "follow", "match", "notify", "paint", "parse", "search", "session"]
