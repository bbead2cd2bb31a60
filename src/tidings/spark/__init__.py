"""tidings on Spark: DataFrame transforms, batch and streaming, and the building and following of topics."""

from tidings.spark.building import build
from tidings.spark.matching import match
from tidings.spark.session import session

__all__ = ["build", "match", "session"]
