"""tidings: a ranked publish/subscribe engine."""

from tidings.model.schema import Category, Number, Place, Schema, Time, Words

__all__ = ["Category", "Number", "Place", "Schema", "Time", "Words"]
