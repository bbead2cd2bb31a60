"""Threads that publish at the same time share a commit: whoever has the lock does what the others wait for too.

Each turn is a savepoint of one transaction, so one that fails is undone by itself and raises in its own thread. If the whole fails
(Ctrl-C, a full disk), memory goes back to the last commit, and whoever has not had his turn takes it by himself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from tidings.durable.registry import Registry

Answer = TypeVar("Answer")
MOST = 256
"""Turns of one commit."""


class Turn(Generic[Answer]):
    def __init__(self, act: Callable[[], Answer]) -> None:
        self._act = act
        self._answer: list[Answer] = []
        self._error: Exception | None = None
        self.done = False

    def run(self) -> None:
        try:
            self._answer = [self._act()]
        except Exception as error:  # noqa: BLE001 - it is raised in the thread whose turn it is
            self._error = error

    def begin_anew(self) -> None:
        self._answer, self._error = [], None

    def answer(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._answer[0]


class Turns:
    def __init__(self, lock: AbstractContextManager[Any], registry: Registry, recover: Callable[[], None]) -> None:
        """`recover` makes memory what the registry says."""
        self._lock = lock
        self._registry = registry
        self._recover = recover
        self._waiting: deque[Turn[Any]] = deque()
        self.commits = self.taken = 0
        """commits that were made here, and the turns they were made for"""

    def take(self, act: Callable[[], Answer]) -> Answer:
        """Do `act`, which publishes, and answer when it is committed."""
        turn = Turn(act)
        self._waiting.append(turn)
        with self._lock:
            if not turn.done:
                self._serve(turn)
        return turn.answer()

    def _serve(self, own: Turn[Answer]) -> None:
        """Its own turn, and with it those that wait."""
        self._waiting.remove(own)
        others = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST - 1))]
        self.commits, self.taken = self.commits + 1, self.taken + 1 + len(others)
        if not others:
            own.run()
            own.done = True
            return
        together: list[Turn[Any]] = [own, *others]
        try:
            with self._registry.together():
                for turn in together:
                    turn.run()
        except BaseException:
            for turn in others:
                turn.begin_anew()
                self._waiting.append(turn)
            self._recover()
            raise
        for turn in together:
            turn.done = True
