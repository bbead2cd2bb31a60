"""Lanes: threads that do what the event loop must not. Whatever waits is taken together, and answers go back in one step.

A request costs one entry in a list and one wake-up a group, not two switches of threads each: under load that is most of what a
small call costs. A lane that is full refuses (`Busy`) instead of letting requests pile up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
TOGETHER = 512
"""Most jobs that are taken at once."""
WAITING = 10_000
"""Most jobs that wait in a lane."""


class Busy(Exception):
    """More requests wait than a lane takes."""


@dataclass(slots=True, eq=False)
class Job(Generic[Result]):
    """`call` is made in the lane's thread; or, if the lane's work knows better, `subject` says what is asked."""

    call: Callable[[], Result]
    subject: Any = None
    future: asyncio.Future[Result] | None = None
    result: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.call()
        except Exception as error:  # noqa: BLE001 - it is raised again where the answer is awaited
            self.error = error

    def settle(self) -> None:
        assert self.future is not None
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def each(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.run()


@dataclass(slots=True, eq=False)
class Lane:
    """`threads` threads take turns at what waits; with one, jobs are done in the order in which they came."""

    name: str
    work: Callable[[Sequence[Job[Any]]], None] = each
    threads: int = 1
    together: int = TOGETHER
    linger: float = 0.0
    """Seconds that are waited for more, if more than one came the last time: what is done together costs less."""
    _waiting: list[Job[Any]] = field(default_factory=list)
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False
    _running: list[threading.Thread] = field(default_factory=list)

    def do(self, call: Callable[[], Result], subject: Any = None) -> Awaitable[Result]:
        """The result of `call`, made in this lane. Called in an event loop."""
        loop = asyncio.get_running_loop()
        job = Job(call, subject, loop.create_future())
        with self._turn:
            if self._closed or len(self._waiting) >= WAITING:
                raise Busy(f"{len(self._waiting)} requests wait for {self.name}")
            self._start()
            self._waiting.append(job)
            self._turn.notify()
        assert job.future is not None
        return job.future

    def _start(self) -> None:
        if not self._running:
            for _ in range(self.threads):
                thread = threading.Thread(target=self._run, name=self.name, daemon=True)
                self._running.append(thread)
                thread.start()

    def _run(self) -> None:
        jobs: list[Job[Any]] = []
        while True:
            with self._turn:
                while not self._waiting:
                    if self._closed:
                        return
                    self._turn.wait()
            if self.linger and len(jobs) > 1:
                time.sleep(self.linger)
            with self._turn:
                if not self._waiting:
                    continue
                share = max(1, min(self.together, -(-len(self._waiting) // self.threads)))
                jobs, self._waiting[:share] = self._waiting[:share], []
            self.work(jobs)
            give_back(jobs)

    @property
    def depth(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Do what waits, take nothing more."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        for thread in self._running:
            thread.join()


def give_back(jobs: Sequence[Job[Any]]) -> None:
    """Settle the futures of jobs that are done, in the loops that wait for them."""
    loops: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in jobs:
        assert job.future is not None
        loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, theirs in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.settle()
