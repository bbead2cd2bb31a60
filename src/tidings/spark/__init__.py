"""tidings on Spark: DataFrame transforms, batch and streaming, and the building and following of topics."""

from tidings.spark.boarding import board
from tidings.spark.building import build
from tidings.spark.events import parse
from tidings.spark.following import follow
from tidings.spark.matching import match
from tidings.spark.notifying import notify
from tidings.spark.searching import search
from tidings.spark.session import session

__all__ = ["board", "build", "follow", "match", "notify", "parse", "search", "session"]
