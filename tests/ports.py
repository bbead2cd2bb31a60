"""Ports of loopback for servers that are told theirs before they start."""

from __future__ import annotations

import os
import random
import socket

LOW, HIGH = 20000, 32000
"""Below those that a system gives to whoever asks for any, so none of them takes it before the server does."""
_drawn = random.SystemRandom()


def free_port() -> int:
    """One that nobody has; processes of one test run draw from ports of their own."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2
    while True:
        port = _drawn.randrange(LOW, HIGH, 2) + worker
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
