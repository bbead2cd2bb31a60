"""The `tidings` command."""

from __future__ import annotations


def main() -> None:
    raise SystemExit("tidings: no commands yet")
