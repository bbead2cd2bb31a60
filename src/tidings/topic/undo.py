"""How a topic in memory undoes a change that failed: a copy of its publisher, and what was done to it since.

Windows change in place, in kernels that stop and go on, so what has begun cannot be taken back piece by piece. A copy costs what
all windows and live events hold; it is taken when the acts since the last one took SHARE times as long as a copy does, so it costs
about one part in SHARE of publishing, and as much memory again as windows have. Undoing does all acts since again, on the copy,
which gives what stood before: they depend on nothing but their arguments. Boards are made of objects and subscriptions, and are
not copied at all; what they recall beside that, and where gates stand, is remembered with every change. Of subscriptions only those
that a change names are remembered, and put back.
"""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections.abc import Callable

from tidings.match.store.store import Before, Ids, Store
from tidings.topic.gates import GATE, Gates
from tidings.topic.journal import Act, Journal
from tidings.topic.publisher import Publisher

SHARE = 40
FEWEST = 256
"""Acts before which no copy is taken: to do as many again is soon done."""


class Remembered(Journal):
    def __init__(self, empty: Publisher) -> None:
        self._kept: tuple[Publisher, list[Act]] = (empty, [])
        self._before: Before | None = None
        self._past: dict[str, str] = {}
        self._spent = self._price = 0.0

    def begins(self, store: Store, ids: Ids | None) -> None:
        self._before = None if ids is None else store.before(ids)

    def done(self, acts: list[Act], seconds: float, publisher: Publisher) -> None:
        self._before = None
        if not acts:
            return
        self._kept[1].extend(acts)
        self._past.update(publisher.changed_boards())
        self._spent += seconds
        if len(self._kept[1]) >= FEWEST and self._spent > SHARE * self._price:
            self._copy(publisher)

    def _copy(self, publisher: Publisher) -> None:
        began = time.perf_counter()
        with contextlib.suppress(MemoryError):
            self._kept = (copy.deepcopy(publisher), [])
        self._spent, self._price = 0.0, time.perf_counter() - began

    def restored(self, fresh: Callable[[], Publisher], store: Store) -> Publisher:
        if self._before is not None:
            store.go_back(self._before)
            self._before = None
        publisher, acts = copy.deepcopy(self._kept[0]), self._kept[1]
        for act in acts:
            act(publisher)
        publisher.boards = fresh().boards
        if publisher.boards is not None:
            counted = dict(publisher.ranked.failures)
            publisher.boards.failures = publisher.ranked.failures
            publisher.past = {id: json.loads(body)["past"] for id, body in self._past.items() if not id.startswith(GATE)}
            publisher.gates = Gates(keyed=True)
            publisher.gates.restore((name, body) for name, body in self._past.items() if name.startswith(GATE))
            publisher.restore_boards(store.subscriptions())
            publisher.ranked.failures.clear()
            publisher.ranked.failures.update(counted)
        return publisher
