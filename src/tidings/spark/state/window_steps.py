"""What a micro-batch does to a shard of windows, as arrays: a step of its log, done when it comes and again by whoever catches up.

A `WindowStep` is all that changes a shard: who leaves it, who joins it, and what is published. Applying the same steps in the same
order gives the same windows, so a log of steps is the state, and it is no longer than what came in.

`Publications`, e events in order of publication, m rows:

| array               | shape, dtype | meaning                                                               |
|---------------------|--------------|-----------------------------------------------------------------------|
| `ids`               | e, string    |                                                                       |
| `time`, `expires`   | e, int64     | microseconds; NEVER for an event that does not expire                   |
| `starts`            | e + 1, int64 | event i concerns the rows [starts[i], starts[i + 1])                    |
| `members`           | m, int32     | whom: numbers of the shard's own                                        |
| `relevances`        | m, float64   |                                                                       |
| `groups`            | m, int64     | 0 for none                                                              |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.model.columns.arrays import ragged_take, starts
from tidings.spark.state.state_format import Bundle, bundle, unbundle


class Publications(NamedTuple):
    ids: pa.StringArray
    time: NDArray[np.int64]
    expires: NDArray[np.int64]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    relevances: NDArray[np.float64]
    groups: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)

    def take(self, events: NDArray[np.int64]) -> Publications:
        """Some of the events, in the given order."""
        begin, rows = ragged_take(self.starts, events)
        ids = self.ids.take(pa.array(events))
        own = self.members[rows], self.relevances[rows], self.groups[rows]
        return Publications(ids, self.time[events], self.expires[events], begin, *own)

    def without(self, members: NDArray[np.int32]) -> Publications:
        """The same for everyone but `members`."""
        kept = ~np.isin(self.members, members)
        return self._replace(
            starts=starts(kept.astype(np.int64))[self.starts],
            members=self.members[kept],
            relevances=self.relevances[kept],
            groups=self.groups[kept],
        )

    def in_order(self) -> Publications:
        """By (time, id)."""
        order = pc.sort_indices(
            pa.table({"time": self.time, "id": self.ids}), sort_keys=[("time", "ascending"), ("id", "ascending")]
        )
        return self.take(order.to_numpy().astype(np.int64))


NOTHING = Publications(
    pa.array([], pa.string()),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(1, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0),
    np.zeros(0, np.int64),
)


def joined(first: Publications, second: Publications) -> Publications:
    """The one and then the other."""
    return Publications(
        pa.concat_arrays([first.ids, second.ids]),
        np.concatenate([first.time, second.time]),
        np.concatenate([first.expires, second.expires]),
        np.concatenate([first.starts, first.starts[-1] + second.starts[1:]]),
        np.concatenate([first.members, second.members]),
        np.concatenate([first.relevances, second.relevances]),
        np.concatenate([first.groups, second.groups]),
    )


def split(published: Publications, time: int) -> tuple[Publications, Publications]:
    """Those up to and including `time`, and those after; they are in order of time."""
    end = int(np.searchsorted(published.time, time, "right"))
    return published.take(np.arange(end)), published.take(np.arange(end, len(published)))


class WindowStep(NamedTuple):
    """`newcomers` has `member`, `id` and the columns of WINDOW; time goes on to `clock` at the end."""

    clock: int
    manifest: int
    gone: NDArray[np.int32]
    newcomers: pa.Table
    published: Publications
    paced: pa.Table | None = None
    """whose pace is another from now on, columns of `shard_gates.PACED`"""


def step_body(step: WindowStep) -> bytes:
    head = {"clock": pa.array([step.clock]), "manifest": pa.array([step.manifest])}
    newcomers = {name: step.newcomers[name].combine_chunks() for name in step.newcomers.column_names}
    tables = {"head": head, "gone": {"member": step.gone}, "newcomers": newcomers, **tables_of(step.published)}
    if step.paced is not None and len(step.paced):
        tables["paced"] = {name: step.paced[name].combine_chunks() for name in step.paced.column_names}
    return bundle(tables)


def step_of(body: bytes) -> WindowStep:
    found = unbundle(body)
    head = {name: column[0].as_py() for name, column in found["head"].items()}
    newcomers = pa.table(found["newcomers"])
    paced = pa.table(found["paced"]) if "paced" in found else None
    return WindowStep(head["clock"], head["manifest"], numbers(found["gone"]["member"]), newcomers, publications(found), paced)


def tables_of(published: Publications) -> Bundle:
    """Publications as tables of a bundle; `publications` reads them back."""
    rows = np.diff(published.starts)
    groups = {"group": published.groups} if published.groups.any() else {}
    return {
        "events": {"id": published.ids, "time": published.time, "expires": published.expires, "rows": rows},
        "rows": {"member": published.members, "relevance": published.relevances, **groups},
    }


def publications(found: Bundle) -> Publications:
    events, rows = found["events"], found["rows"]
    time, expires = numbers(events["time"]), numbers(events["expires"])
    members = numbers(rows["member"])
    groups = numbers(rows["group"]) if "group" in rows else np.zeros(len(members), np.int64)
    return Publications(events["id"], time, expires, starts(numbers(events["rows"])), members, numbers(rows["relevance"]), groups)


def numbers(array: pa.Array) -> NDArray[Any]:
    made: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return made
