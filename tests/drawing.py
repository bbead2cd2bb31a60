"""How many examples a property is run on."""

from __future__ import annotations

FEW = 6
SAME = 20
"""With `--few`; and with the profile `ci`, which draws the same ones each time, so that more of them find nothing new twice."""
_limit: int | None = None


def limit_to(most: int | None) -> None:
    global _limit
    _limit = most


def at_most(examples: int) -> int:
    """That many, or as many as this run draws."""
    return examples if _limit is None else min(examples, _limit)
