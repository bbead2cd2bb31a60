"""Notes of a selection from a number on, in order, each once: what streams and sinks have in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from tidings.serve.hearing.listening import PAGE, Listener, Listening
from tidings.serve.hearing.notes import Note


class Heard(NamedTuple):
    """`notes` are next, and nothing else of the selection lies up to `cursor`; `gone` is a number up to which all is lost."""

    notes: list[Note]
    cursor: int
    gone: int | None = None


async def follow(tail: Listening, listener: Listener, after: int) -> AsyncIterator[Heard]:
    """What the listener's selection has above `after`, then what it hears, until it is over."""
    gone, newest = await asyncio.to_thread(tail.ends)
    cursor = 0 if after > newest else after
    if cursor < gone:
        yield Heard([], cursor, gone)
        cursor = gone
    yield Heard([], cursor)
    while not listener.over:
        upto = listener.since
        while cursor < upto and not listener.over:
            notes = tail.kept(listener.selection, cursor, upto)
            if notes is None:
                gone, _ = await asyncio.to_thread(tail.ends)
                if cursor < gone:
                    yield Heard([], cursor, gone)
                    cursor = gone
                    continue
                notes, cursor = await asyncio.to_thread(tail.page, listener.selection, cursor, PAGE, upto)
            else:
                cursor = upto
            yield Heard(notes or [], cursor)
        while not listener.behind and not listener.over:
            await listener.woken.wait()
            fresh = [note for note in listener.take() if note.number > cursor]
            if not listener.behind:
                cursor = fresh[-1].number if fresh else max(cursor, tail.at)
                yield Heard(fresh, cursor)
        if listener.behind:
            tail.again(listener)
