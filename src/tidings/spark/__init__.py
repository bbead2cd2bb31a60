"""tidings on Spark: DataFrame transforms, batch and streaming, and the building and following of topics."""

from tidings.spark.frames.session import session
from tidings.spark.transforms.boarding import board
from tidings.spark.transforms.building import build
from tidings.spark.transforms.events import parse
from tidings.spark.transforms.following import follow
from tidings.spark.transforms.matching import match
from tidings.spark.transforms.notifying import notify
from tidings.spark.transforms.searching import search

__all__ = ["board", "build", "follow", "match", "notify", "parse", "search", "session"]
