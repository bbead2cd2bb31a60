"""The subscriber's k: each subscription hears of the k most relevant publications of any last w, each once.

`Windows` knows no filters. Its owner tells it of every publication, with the subscriptions that it matched and its relevance to
each; what comes back is who is to be notified. The candidates of a subscription at time t are its matches published in
(max(activation, t - duration), t], or after the activation and among the topic's last `count` publications, that have not
expired (an event lives while t < expires). The k best by (relevance desc, time asc, id asc) are its list. A candidate is
notified the first time it stands in the list: `entered` at its publishing, `promoted` when a better one has left.

The order of things. An act at time t moves the clock to t, stopping at every instant up to and including t at which a candidate
leaves a list; then the publication joins, and in count windows pushes out what it pushes out in the same step. Acts at one
instant happen one after the other.

Only what is published after the activation counts, whatever its time.

Late events. One that is older than the clock is taken with its own time: it competes as long as that lies in the window, ranks
by it among equals, and is notified at the clock's time. In a count window it is simply the newest publication.

Special cases, recognised at activation: k = 0 hears nothing and k = None everything, both without any memory (what is
notified has rank 0, and there is no `top`). Without a window (w -> infinity) pruning leaves the k best and those that outlive
one of them. A window that holds no more than k publications (w -> 0, low intensity) never prunes or refills: each match is
told at once.

`error=sigma` keeps the paper's bounded queue of `queue_length(k, sigma, m)` instead of the exact k-skyband; m is the count of a
count window, else the paper's worst case of 10^9.

The memory and its invariants are described in `window_memory`. [topkw, Sections 2 and 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from tidings.engine.ranked_lists import Activation, Entry, EntryColumns, RankedLists, window_of
from tidings.engine.window_lists import watch
from tidings.engine.window_memory import DONE, JOINING, NEVER, POOL_FULL, ROW
from tidings.engine.window_passes import publish_rows
from tidings.errors import SubscriptionError
from tidings.model.window import Window


class Windows(RankedLists):
    def activate(self, subscription: str, k: int | None, window: Window | None, time: int, error: float | None = None) -> None:
        """From `time` on, excluded, the subscription hears its k best of any window; no window means since then."""
        self._activate(subscription, Activation(k, window, time, error), 2 * (k or 0) + 8)

    def publish(self, event: str, time: int, expires: int | None, concerned: Sequence[tuple[str, float]]) -> list[Entry]:
        """Must be told of every publication of the topic, also of one that concerns nobody: count windows count it."""
        slots = np.fromiter((self.slot(subscription) for subscription, _ in concerned), np.int32, len(concerned))
        relevances = np.fromiter((relevance for _, relevance in concerned), np.float64, len(concerned))
        lives_until = NEVER if expires is None else expires
        return self.entries(self.publish_batch([event], [time], [lives_until], [0, len(slots)], slots, relevances))

    def publish_batch(
        self,
        events: Sequence[str] | pa.Array,
        times: ArrayLike,
        expires: ArrayLike,
        starts: ArrayLike,
        slots: ArrayLike,
        relevances: ArrayLike,
    ) -> EntryColumns:
        """Publish in this order; event i concerns slots[starts[i]:starts[i + 1]]. `expires` is NEVER for an event without."""
        starts = np.asarray(starts, np.int64)
        slots = np.asarray(slots, np.int32)
        relevances = np.asarray(relevances, np.float64)
        assert len(starts) == len(events) + 1
        assert starts[-1] == len(slots) == len(relevances)
        if np.isnan(relevances).any():
            raise SubscriptionError("relevance is NaN: a number is accepted")
        first = self._store(events, times, expires)
        meter = self._memory.meter
        meter[ROW] = meter[JOINING] = 0
        parts = []
        while (stop := publish_rows(self._memory, first, starts, slots, relevances)) != DONE:
            parts.append(self._drain())
            self._widen_pool() if stop == POOL_FULL else self._widen_out()
        return self._columns([*parts, self._drain()])

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Windows:
        """Go on from what `state` gave."""
        windows = cls()
        windows._set_clock(state)
        handles = windows._store_saved(state["subscriptions"].values())
        for subscription, saved in state["subscriptions"].items():
            windows.activate(subscription, saved["k"], window_of(saved), saved["since"], saved["error"])
            slot, candidates = windows.slot(subscription), saved["candidates"]
            windows._put_candidates(slot, candidates, handles, len(candidates) + 1)
            lists = windows._memory.lists
            lists["viewed"][slot] = min(len(candidates), lists["limit"][slot])
            watch(windows._memory, slot)
        windows.changed()
        return windows

    def _store_saved(self, subscriptions: Iterable[Mapping[str, Any]]) -> dict[int, int]:
        """Take back the events that any candidate refers to; their handles by publication number."""
        saved = {c[4]: (c[0], c[2], NEVER if c[3] is None else c[3]) for s in subscriptions for c in s["candidates"]}
        ids, times, expires = zip(*saved.values(), strict=True) if saved else ((), (), ())
        first = self._store(list(ids), times, expires)
        self._memory.events["number"][first : first + len(saved)] = list(saved)
        return {number: first + i for i, number in enumerate(saved)}
