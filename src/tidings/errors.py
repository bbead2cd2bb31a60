"""What a caller's mistake raises: one sentence naming the field, the value and what is accepted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from reprlib import Repr

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 4


class TidingsError(Exception):
    """Root of every exception that tidings raises on purpose."""


class SchemaError(TidingsError):
    """A topic's schema cannot be built or does not fit what it is used with."""


class EventError(TidingsError):
    """An event cannot be read into the topic's schema."""


class SubscriptionError(TidingsError):
    """A subscription cannot be accepted."""


class FilterError(SubscriptionError):
    """A filter cannot be parsed or compiled."""


class UnknownAttributeError(FilterError):
    """A filter or an expression names an attribute that the topic does not have; `attribute` is its name."""

    def __init__(self, sentence: str, attribute: str) -> None:
        super().__init__(sentence)
        self.attribute = attribute


class StorageError(TidingsError):
    """A topic's files cannot be read or written."""


class ServiceError(TidingsError):
    """A service refused, failed or cannot be reached: `status` is what it answered, `retry_after` the seconds it asks to wait."""

    def __init__(self, sentence: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.retry_after = status, retry_after


class OutboxError(TidingsError):
    """A consumer or a number that the outbox does not know."""


class BulkError(TidingsError):
    """Rows of a bulk load that were refused; `rows` holds (row, sentence) for every one of them."""

    SHOWN = 20

    def __init__(self, what: str, rows: Sequence[tuple[int, str]]) -> None:
        self.rows = list(rows)
        shown = "\n".join(f"  row {row}: {sentence}" for row, sentence in self.rows[: self.SHOWN])
        more = len(self.rows) - self.SHOWN
        tail = f"\n  ... and {more} more" if more > 0 else ""
        super().__init__(f"{len(self.rows)} {what} refused, nothing was applied:\n{shown}{tail}")


class NeverMatchesWarning(UserWarning):
    """A filter that no event can satisfy: accepted, and said."""


class RankingWarning(UserWarning):
    """A part of a subscription's ranking that has no effect: accepted, and said."""


class DroppedWarning(UserWarning):
    """Something in a filter that the tokenizer drops, so that it is not asked for: accepted, and said."""


def shown(value: object) -> str:
    """A value as a sentence shows it: its repr, cut short when it is long."""
    try:
        text = _SHORT.repr(value)
    except ValueError:
        text = f"a whole number of more than {sys.get_int_max_str_digits()} digits"
    return text if len(text) <= 80 else f"{text[:60]}..."


class StorageWarning(UserWarning):
    """Something on disk was not as it should be, and was put right."""
