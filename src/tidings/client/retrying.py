"""How often a call is sent, and how long it waits in between: longer each time, and never the same for all."""

from __future__ import annotations

import random

import httpx

from tidings.client.problems import AGAIN, problem_of
from tidings.errors import ServiceError

TRIES = 5
LONGEST = 10.0


class Pauses:
    def __init__(self) -> None:
        self.tries = 0

    def next(self) -> float:
        """Seconds to wait before the next try."""
        self.tries += 1
        return random.uniform(0.5, 1.0) * min(LONGEST, 0.1 * 2.0**self.tries)


class Tries:
    """Of one call: one that is not safe is sent once."""

    def __init__(self, url: str, safe: bool) -> None:
        self._url, self._most = url, TRIES if safe else 1
        self._pauses = Pauses()

    def broken(self, error: httpx.TransportError) -> float:
        """Seconds to wait after a connection broke, or the error if it was the last try."""
        wait = self._pauses.next()
        if self._pauses.tries >= self._most:
            raise ServiceError(f"the service at {self._url} cannot be reached: {error or type(error).__name__}") from error
        return wait

    def refused(self, answer: httpx.Response) -> float:
        """The same after a refusal: those that pass are waited for, as long as the service asks."""
        problem = problem_of(answer.status_code, answer.headers, answer.content)
        wait = self._pauses.next()
        if answer.status_code not in AGAIN or self._pauses.tries >= self._most:
            raise problem
        return max(wait, min(getattr(problem, "retry_after", None) or 0.0, LONGEST))
