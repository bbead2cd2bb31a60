"""What the registry need not remember once a manifest is saved.

A row of `gone` says two things: to an opener, that an id in the manifest's segments was removed after the manifest; and to a
rebuild, that an id in an older chunk is no longer live. A manifest at change m makes the first superfluous up to m; when no chunk
is older than the row, the second is too. Chunks that are kept only for few of their rows are written anew without the others, and
then nothing up to m need be remembered.

An opener fixes the registry's state first and reads the manifest after, so it never pairs a manifest with a registry that was
pruned for a later one. `pruned` in `meta` guards against folders put together by hand: an older manifest does not fit.
"""

from __future__ import annotations

import pyarrow as pa

from tidings.durable.recovery import gone_marks, live_rows, since_of
from tidings.durable.registry import Registry, crc_of, set_meta
from tidings.durable.registry_journal import chunk_body

MOSTLY = 0.5
"""Chunks are written anew when there are more rows of `gone` than this part of theirs."""


def pruned_to(registry: Registry) -> int:
    """The change up to which an opener must have a manifest."""
    seq: int = registry.meta().get("pruned", 0)
    return seq


def prune(registry: Registry, seq: int) -> None:
    """Forget what a manifest at change `seq`, now on disk, makes superfluous."""
    with registry.transaction() as db:
        db.execute("DELETE FROM gone WHERE seq <= min(?, (SELECT ifnull(min(seq), ?) FROM chunk))", (seq, seq))
        set_meta(db, pruned=seq)
    [(marks,)] = registry.read("SELECT count(*) FROM gone WHERE seq <= ?", seq)
    [(rows,)] = registry.read("SELECT ifnull(sum(rows), 0) FROM chunk")
    if marks > MOSTLY * rows:
        compact(registry, seq)
    registry.shrink()


def compact(registry: Registry, seq: int) -> None:
    """Write the chunks anew with the rows that still live.

    What dies while this reads has a later change number and keeps its mark, so changes go on meanwhile.
    """
    marks, renewed = gone_marks(registry), []
    for (chunk,) in registry.read("SELECT seq FROM chunk WHERE seq <= ?", seq):
        [(_, body)] = registry.bodies("chunk", "WHERE seq = ?", chunk)
        table = pa.ipc.open_stream(body).read_all()
        live = live_rows(marks, chunk, table)
        if len(live) < len(table):
            body = chunk_body(live, since_of(table)).to_pybytes()
            renewed.append((len(live), body, crc_of(body), chunk))
    with registry.transaction() as db:
        db.executemany("UPDATE chunk SET rows = ?, body = ?, crc = ? WHERE seq = ?", renewed)
        db.execute("DELETE FROM chunk WHERE rows = 0")
        db.execute("DELETE FROM gone WHERE seq <= ?", (seq,))
