"""What windows answer: notifications as columns, and rows of them for those who loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.windows.memory import PROMOTED, Floats, Handles, Ints, Records

WHY = ("entered", "promoted")


class Entry(NamedTuple):
    subscription: str
    event: str
    relevance: float
    rank: int
    why: str
    at: int


_entry = partial(tuple.__new__, Entry)
"""Of a tuple of its fields: `Entry(*fields)` takes three times as long, and notifications come by the hundred."""


class StoredIds(NamedTuple):
    """Ids of events by handle. Arrays are replaced when events are forgotten and only added to until then, so these stay right."""

    handle: Handles
    events: Records
    id_bytes: NDArray[np.uint8]

    def array(self) -> pa.StringArray:
        """Taken from all that are stored, seen as an Arrow array."""
        offsets = np.append(self.events["id_start"][:1], self.events["id_end"])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.id_bytes)]
        return pa.Array.from_buffers(pa.large_string(), len(self.events), buffers).take(pa.array(self.handle)).cast(pa.string())

    def texts(self) -> list[str]:
        """As `array`, cheaper for few."""
        handles = self.handle.tolist()
        different = list(set(handles))
        stored = self.events[different]
        spans = zip(different, stored["id_start"].tolist(), stored["id_end"].tolist(), strict=True)
        text = {event: self.id_bytes[start:end].tobytes().decode() for event, start, end in spans}
        return [text[event] for event in handles]


@dataclass(slots=True)
class Entries:
    """Notifications in order of time, in any order within an instant. `slot` is the subscription.

    `number` is how many had been published when it was told, `rank` is 0 where there is no k.
    """

    slot: Handles
    ids: StoredIds | pa.StringArray
    relevance: Floats
    rank: Ints
    promoted: NDArray[np.bool_]
    at: Ints
    number: Ints
    names: Sequence[str]
    """Of the slots."""

    @property
    def event(self) -> pa.StringArray:
        return self.ids.array() if isinstance(self.ids, StoredIds) else self.ids

    def __len__(self) -> int:
        return len(self.slot)

    def __iter__(self) -> Iterator[Entry]:
        if not len(self.slot):
            return iter(())
        names = [self.names[slot] for slot in self.slot.tolist()]
        texts = self.ids.texts() if isinstance(self.ids, StoredIds) else self.ids.to_pylist()
        whys = [WHY[promoted] for promoted in self.promoted.tolist()]
        return map(_entry, zip(names, texts, self.relevance.tolist(), self.rank.tolist(), whys, self.at.tolist(), strict=True))


def of_notices(out: Records, events: Records, id_bytes: NDArray[np.uint8], names: Sequence[str]) -> Entries:
    """Records of NOTICE, which may be written over afterwards: copied once, the columns are seen in the copy."""
    out = out.copy()
    ids = StoredIds(out["event"], events, id_bytes)
    return Entries(out["slot"], ids, out["relevance"], out["rank"], out["why"] == PROMOTED, out["at"], out["number"], names)


def joined(parts: Sequence[Entries]) -> Entries:
    """One after the other."""
    if len(parts) == 1:
        return parts[0]
    slot, relevance, rank, promoted, at, number = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("slot", "relevance", "rank", "promoted", "at", "number")
    )
    return Entries(slot, pa.concat_arrays([part.event for part in parts]), relevance, rank, promoted, at, number, parts[0].names)
