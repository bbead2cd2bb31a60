"""Where Spark talks on this machine: its JVM's and workers' words go to a file, so that the screen has one voice."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ERRORS = 2
"""The file descriptor that a process started from here inherits and to which the JVM writes, for itself and for its workers."""


@contextmanager
def errors_into(log: Path) -> Iterator[None]:
    """Programs started within have `log` for their error output, for as long as they live."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    before = os.dup(ERRORS)
    with log.open("ab") as file:
        os.dup2(file.fileno(), ERRORS)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, ERRORS)
        os.close(before)


def last_words(log: Path) -> str:
    """The last line of the log."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
