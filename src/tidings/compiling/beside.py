"""Processes that compile into the cache while plain Python answers.

They are started when the first kernel is asked for that the cache has not, one for every core but one, four at most, and politely
(`nice`); they end with the process that started them. What they have compiled is in the cache, for every process of the user.
"""

from __future__ import annotations

import atexit
import importlib
import os
import pickle
import subprocess
import sys
from typing import Any, NamedTuple
from zlib import compress, crc32, decompress

PROCESSES = max(1, min(4, (os.cpu_count() or 1) - 1))
POLITE = 5
_running: dict[int, subprocess.Popen[bytes]] = {}


class Wanted(NamedTuple):
    """A kernel, and numba's types of its arguments."""

    module: str
    name: str
    signature: tuple[Any, ...]

    def compile(self) -> None:
        """Into the cache, if it is not there."""
        from tidings.compiling.content_cache import filling

        kernel = getattr(importlib.import_module(self.module), self.name)
        with filling(self.module):
            kernel.dispatcher.compile(self.signature)


def ask(wanted: Wanted) -> bool:
    """Let a process beside compile this; whether one can. A module's kernels go to one process: they share what they call."""
    if not sys.executable or wanted.module == "__main__":
        return False
    place = crc32(wanted.module.encode()) % PROCESSES
    try:
        child = _running.get(place) or _start(place)
        assert child.stdin is not None
        # Small, so that all kernels there are fit into the pipe and nobody waits for its other end.
        pickle.dump(compress(pickle.dumps(tuple(wanted))), child.stdin)
        child.stdin.flush()
    except OSError:
        return False
    return True


def _start(place: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TIDINGS_KERNELS": "compiled", "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _running[place] = child
    return child


@atexit.register
def stop() -> None:
    for child in _running.values():
        child.terminate()
    for child in _running.values():
        child.communicate()
    _running.clear()


# A fork has neither the processes nor their pipes.
os.register_at_fork(after_in_child=_running.clear)


def main() -> None:
    os.nice(POLITE)
    owner = os.getppid()
    while os.getppid() == owner:
        try:
            wanted = Wanted(*pickle.loads(decompress(pickle.load(sys.stdin.buffer))))
        except EOFError:
            return
        wanted.compile()


if __name__ == "__main__":
    main()
