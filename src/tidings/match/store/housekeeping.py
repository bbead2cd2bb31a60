"""What a store has done for it beside its changes: packing, merging and saving, by one worker in the background.

A memtable that has grown is packed at once by the store; here segments are then merged (`merging`): those that are due at once,
those that only matching gains by when no change has come for QUIET seconds. A merge works on the snapshot it began with and is put
in place with the removals that came meanwhile, so it never changes an answer. What is packed is given to `save`, which a durable
topic writes to disk.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tidings.match.store import merging
from tidings.match.store.live_segment import LiveSegment
from tidings.match.store.reader import Snapshot
from tidings.match.store.store import Store

Done = TypeVar("Done")

QUIET = 2.0
"""Seconds without a change after which segments are merged for the sake of those who match."""


class Housekeeping:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._save: Callable[[Snapshot], None] = lambda packed: None
        self._last_saved: Snapshot | None = store.packed
        self._worker: ThreadPoolExecutor | None = None
        self._work: Future[None] | None = None
        self._quiet: threading.Timer | None = None
        self._closed = False
        self._process = os.getpid()
        self.rewritten = 0
        store.on_packed = lambda: self._background(self._tidy)

    def keep(self, save: Callable[[Snapshot], None], saved: Snapshot | None) -> None:
        """From now on `save` what is packed; `saved` is on disk already, None if nothing is."""
        self._finish()
        with self._store.lock:
            self._save, self._last_saved = save, saved

    def let_go(self) -> None:
        """Save nothing any more."""
        self._save = lambda packed: None

    def flush(self) -> None:
        """Turn the memtable into a segment, and wait until a durable topic has written it, and any removals."""
        with self._store.lock:
            self._store.pack()
            work = self._background(self._tidy)
        work.result()

    def merge(self) -> None:
        """Make one segment of all, and wait for it. The one worker merges: two at a time could take up the same segment."""
        self._background(self._store.merge).result()

    def reclaim(self) -> None:
        """Take back unused codes, and save; whoever calls it lets no change come meanwhile."""
        self._background(self._store.reclaim).result()
        self.flush()

    def do(self, work: Callable[[], Done]) -> Done:
        """Have something done between what else is done here, and wait for it."""
        done: list[Done] = []
        self._background(lambda: done.append(work())).result()
        return done[0]

    def settle(self) -> None:
        """Wait for the work in the background, and for what it would do in quiet times; what it raised is raised here."""
        self._finish()
        if self._worker is not None:
            self._background(self._rest).result()

    def close(self) -> None:
        with self._store.lock:
            self._closed = True
            if self._quiet is not None:
                self._quiet.cancel()
        if self._worker is not None:
            self._worker.shutdown(wait=True)

    def _tidy(self) -> None:
        """Merge while merges are due, then save."""
        while len(due := self._due(merging.due_for_merge)) > 1:
            self._store.merge(due)
        self._saved()
        with self._store.lock:
            if self._due_when_quiet() and not self._closed:
                self._quiet = threading.Timer(QUIET, self._when_quiet, (self._store.snapshot.seq,))
                self._quiet.daemon = True
                self._quiet.start()

    def _due(self, rule: Callable[[Sequence[LiveSegment]], list[LiveSegment]]) -> list[LiveSegment]:
        with self._store.lock:
            return rule(self._store.snapshot.segments)

    def _when_quiet(self, seq: int) -> None:
        with self._store.lock:
            if self._store.snapshot.seq == seq and not self._closed:
                self._background(self._rest)

    def _due_when_quiet(self) -> list[LiveSegment]:
        """What to merge when it is quiet: in all no more rows than were written, so that each is rewritten once more at most."""
        due = self._due(merging.due_when_quiet)
        return due if self.rewritten + sum(live.living for live in due) <= self._store.written else []

    def _rest(self) -> None:
        with self._store.lock:
            due = self._due_when_quiet()
            self.rewritten += sum(live.living for live in due)
        if due:
            self._store.merge(due)
            self._saved()

    def _saved(self) -> None:
        with self._store.lock:
            packed = self._store.packed
        if packed != self._last_saved:
            self._save(packed)
            self._last_saved = packed

    def _background(self, work: Callable[[], None]) -> Future[None]:
        if self._quiet is not None:
            self._quiet.cancel()
        if os.getpid() != self._process:
            # A fork takes no threads along: the child of a topic in memory has a worker of its own.
            self._worker, self._process = None, os.getpid()
        self._worker = self._worker or ThreadPoolExecutor(1, "tidings-merge")
        self._work = self._worker.submit(work)
        return self._work

    def _finish(self) -> None:
        if self._work is not None:
            self._work.result()
