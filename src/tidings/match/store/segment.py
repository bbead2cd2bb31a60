"""A segment: many subscriptions, packed once, never changed. Who of them is gone stands beside it (`live_segment`).

Subscriptions stand in ascending order of id; a subscription's place is its *ordinal*, so among equal scores the lower ordinal
is the better id. Clauses stand in order of their owners. Every clause has one *home*, the access path that the planner priced
lowest, and the home holds the clause's exact predicates too: there is no second copy.

| part       | shape, dtype       | meaning                                                                               |
|------------|--------------------|---------------------------------------------------------------------------------------|
| `table`    | n rows             | id and the ranking columns in use (`rows.RANKING`)                                    |
| `owner`    | c, int32, or None  | ordinal of each clause's subscription, ascending; None when each has the one clause   |
| `homes`    | name -> `Home`     | each with the rows of its clauses, and the way to those that match                    |
| `kept`     | name -> clauses    | those that are matched elsewhere                                                      |
| `residues` | clause -> sources  | what is checked last, in Python                                                       |

`born` is the change number it was made at. Matching is told who is gone: `died[ordinal]`, empty when nobody is, and `since`, the
reader's change; both count from `born`, and a subscription is seen iff died[ordinal] > since.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.compiling.pinned import Pinned
from tidings.index.packed.clauses import PackedClauses
from tidings.index.packed.packing import readonly
from tidings.index.packed.protocol import Home
from tidings.index.packed.record import Events, Ranking
from tidings.match.store.array_files import read_arrays, write_arrays
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.hits import NEVER, NO_ROWS, NO_TEXT, Failures, Pairs, Terms, ValuesOf, distinct
from tidings.match.store.planner import NEAR, Homes, build_homes, mapped_homes
from tidings.match.store.point_residues import judge_points
from tidings.match.store.ranking_columns import TermColumns, column_of
from tidings.match.store.sorted_ids import Names
from tidings.match.store.subscription_rows import Rows, fields_at
from tidings.model.columns.arrays import ClauseColumns, EventColumns, Vocabularies
from tidings.model.columns.gather import NO_CLAUSES, clause_of, concat_clauses, gather_clauses
from tidings.model.door.subscription import BLANK, Subscription
from tidings.model.filter.clause import Residue, Values
from tidings.model.filter.compile import compile_residue
from tidings.model.filter.linear import Linear, parse_linear
from tidings.model.values.schema import Schema
from tidings.model.values.window import CALENDAR
from tidings.rank.nearness import point_of


class Segment:
    def __init__(
        self,
        schema: Schema,
        table: pa.Table,
        homes: Homes,
        residues: Mapping[int, tuple[str, ...]],
        owner: NDArray[np.int32] | None,
        born: int,
    ) -> None:
        """`owner` is None when every subscription has one clause, of its own number."""
        self.schema = schema
        self.table = table
        self.homes, self.kept = homes
        self._owner = owner
        self.born = born
        self._residue_sources = residues
        self.names = Names(table["id"].chunk(0) if table["id"].num_chunks else pa.array([], pa.string()))

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def build(cls, schema: Schema, rows: Rows, statistics: Statistics, born: int) -> Segment:
        rows = rows.by_id()
        table = rows.table.combine_chunks()
        similar = ~np.isnan(column_of(table, "alpha", np.nan))
        homes = build_homes(
            schema, rows.clauses, column_of(table, "score", 1.0), similar, near_rows(table, rows.clauses), statistics
        )
        owner = rows.clauses.owner
        single = len(owner) == len(table) and bool((owner == np.arange(len(owner))).all())
        return cls(schema, table, homes, rows.residues, None if single else owner, born)

    def owner(self, clause: NDArray[np.int32]) -> NDArray[np.int32]:
        """The subscriptions that clauses belong to."""
        return self._owner[clause] if self._owner is not None else clause

    @property
    def clause_count(self) -> int:
        return sum(map(len, self.parts.values()))

    @property
    def parts(self) -> dict[str, Home | PackedClauses]:
        """Homes and what is merely kept, by name: each clause stands in one of them."""
        return {**self.homes, **self.kept}

    @cached_property
    def residues(self) -> dict[int, tuple[Residue, ...]]:
        return {
            clause: tuple(compile_residue(self.schema, s) for s in sources) for clause, sources in self._residue_sources.items()
        }

    @cached_property
    def score(self) -> NDArray[np.float64]:
        """Static score by ordinal."""
        return readonly(column_of(self.table, "score", 1.0))

    @cached_property
    def scored(self) -> bool:
        """Whether any static score differs from 1."""
        return "score" in self.table.column_names

    @cached_property
    def expires(self) -> NDArray[np.int64] | None:
        return column_of(self.table, "expires", NEVER) if "expires" in self.table.column_names else None

    @cached_property
    def formulas(self) -> dict[int, Linear]:
        """Scores that depend on the event, by ordinal."""
        if "formula" not in self.table.column_names:
            return {}
        texts = self.table["formula"].to_pylist()
        return {row: parse_linear(self.schema, "score", text) for row, text in enumerate(texts) if text is not None}

    def scores(self, event: NDArray[np.int32], ordinal: NDArray[np.int32], values: ValuesOf) -> NDArray[np.float64]:
        """Of each match: static, or the subscription's formula of the event's attributes."""
        if self.scored:
            score = self.score[ordinal]
        else:
            # As `np.ones`, at a third of its price for a few.
            score = np.empty(len(ordinal))
            score.fill(1.0)
        if self.formulas:
            for i in np.flatnonzero(np.isin(ordinal, list(self.formulas))):
                score[i] = self.formulas[int(ordinal[i])](values(int(event[i])))
        return score

    @cached_property
    def ranked(self) -> NDArray[np.bool_] | None:
        """Whether each subscription has a k, a window or a digest; None when nobody has."""
        given = [self.table[name].is_valid().to_numpy() for name in ("k", "window", "digest") if name in self.table.column_names]
        return np.logical_or.reduce(given) if given else None

    @cached_property
    def by(self) -> tuple[NDArray[np.int32], list[str]] | None:
        """The number of each subscription's relevance, NO_TEXT for none, and the texts; None when nobody has one."""
        if "by" not in self.table.column_names:
            return None
        coded = self.table["by"].combine_chunks().dictionary_encode()
        return coded.indices.fill_null(NO_TEXT).to_numpy(), coded.dictionary.to_pylist()

    def terms(self, ordinal: NDArray[np.integer]) -> list[Terms]:
        """What makes the lists of these."""
        return self._terms.at(ordinal)

    @cached_property
    def _terms(self) -> TermColumns:
        return TermColumns(self.table)

    @property
    def unconditional(self) -> bool:
        """Whether matching needs nothing beyond the homes."""
        return not self._residue_sources and self.expires is None

    @property
    def one_clause_each(self) -> bool:
        return self._owner is None

    def clauses_of(self, ordinal: int) -> range:
        """The clauses of a subscription."""
        if self._owner is None:
            return range(ordinal, ordinal + 1)
        first, end = self._owner.searchsorted(np.array((ordinal, ordinal + 1), np.int32))
        return range(first, end)

    @cached_property
    def similar(self) -> NDArray[np.int64]:
        """Ordinals of the similarity subscriptions."""
        if "alpha" not in self.table.column_names:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.table["alpha"].is_valid().to_numpy())

    @cached_property
    def near(self) -> NDArray[np.int64]:
        """Ordinals of the subscriptions that are nothing but an ideal point."""
        return np.sort(self.owner(self.homes[NEAR].rows)).astype(np.int64) if NEAR in self.homes else np.empty(0, np.int64)

    def subscription(self, vocabularies: Vocabularies, ordinal: int) -> Subscription:
        clauses = []
        for row in self.clauses_of(ordinal):
            name, slot = self.home_of(row)
            clause = clause_of(self.schema, vocabularies, self.parts[name].clause(slot))
            clauses.append(replace(clause, residue=self.residues[row]) if row in self._residue_sources else clause)
        return BLANK.but(id=self.names[ordinal], clauses=tuple(clauses), **fields_at(self.schema, self.table, ordinal))

    def home_of(self, clause: int) -> tuple[str, int]:
        """The name of a clause's home, and the slot it has there."""
        home, slot = self._places[clause].tolist()
        return [*self.parts][home], slot

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """(home, slot) of each clause; made when first asked for, since matching does not need it."""
        places = np.empty((self.clause_count, 2), np.int32)
        for number, home in enumerate(self.parts.values()):
            places[home.rows] = np.stack([np.full(len(home), number), np.arange(len(home))], axis=1)
        return places

    def match(
        self,
        events: EventColumns,
        values: ValuesOf,
        died: NDArray[np.uint32],
        since: int,
        near: bool = True,
        failures: Failures | None = None,
    ) -> Pairs:
        """(event row, ordinal) of every match of a live subscription, each once, by event and then ordinal.

        `near`: also those that are nothing but an ideal point, which match everything. `failures` counts filters without an answer.
        """
        homes = [home for name, home in self.homes.items() if near or name != NEAR]
        found = [home.match_batch(events, died, since) for home in homes]
        event = np.concatenate([e for e, _ in found]) if found else NO_ROWS
        clause = np.concatenate([c for _, c in found]) if found else NO_ROWS
        if self._residue_sources:
            event, clause = self._check_residues((event, clause), events.box, values, failures)
        return distinct(event, self.owner(clause))

    def why_select(self, k: int) -> str | None:
        """Why the k best must be selected from all matches; None when homes can give them in order of score."""
        if self._residue_sources:
            return "some filters have a residue, which is checked after matching"
        if self.formulas:
            return "some scores depend on the event"
        if self.expires is not None:
            return "some subscriptions expire"
        return "k is at least the number of subscriptions" if k >= len(self) else None

    def topk(self, events: EventColumns, k: int, died: NDArray[np.uint32], since: int) -> Pairs:
        """(event row, ordinal) of each event's k best, in order of (score desc, ordinal asc), without producing all matches."""
        found = [home.topk_batch(events, k, self.score, self._tie, died, since) for home in self.homes.values()]
        if len(found) == 1:
            return found[0][0], self.owner(found[0][1])
        event = np.concatenate([NO_ROWS, *(e for e, _ in found)])
        event, ordinal = distinct(event, self.owner(np.concatenate([NO_ROWS, *(c for _, c in found)])))
        order = np.lexsort((ordinal, -self.score[ordinal], event))
        order = order[np.arange(len(order)) - np.searchsorted(event, event) < k]
        return event[order], ordinal[order]

    def topk_one(self, event: Pinned[Events], k: int, died: NDArray[np.uint32], since: int) -> NDArray[np.int32]:
        """The same of one event, the short way: ordinals."""
        found = [home.topk_one(event, k, self._ranking, died, since) for home in self.homes.values()]
        if len(found) == 1:
            return self.owner(found[0])
        ordinal = np.unique(self.owner(np.concatenate([NO_ROWS, *found])))
        return ordinal[np.argsort(-self.score[ordinal], kind="stable")[:k]]

    @cached_property
    def _ranking(self) -> Pinned[Ranking]:
        return Pinned(Ranking(self.score, self._tie))

    @cached_property
    def _tie(self) -> NDArray[np.int64]:
        return readonly(np.arange(len(self)))

    def match_one(
        self,
        event: Pinned[Events],
        values: Values,
        died: NDArray[np.uint32],
        since: int,
        near: bool = True,
        failures: Failures | None = None,
    ) -> NDArray[np.int32]:
        """Ordinals of the live subscriptions that one event matches, each once, ascending: the short way."""
        found = [home.match_one(event, 0, died, since) for name, home in self.homes.items() if near or name != NEAR]
        clause = found[0] if len(found) == 1 else np.concatenate(found) if found else NO_ROWS
        if not len(clause):
            return NO_ROWS
        if self._residue_sources:
            clause = clause[[self._holds(c, values, failures) for c in clause.tolist()]]
        if self._owner is None:
            clause.sort()
            return clause
        return np.unique(self.owner(clause)) if len(clause) > 1 else self.owner(clause)

    def _check_residues(self, found: Pairs, box: NDArray[np.float64], values: ValuesOf, failures: Failures | None) -> Pairs:
        event, clause = found
        kept = np.ones(len(event), np.bool_)
        asked = np.flatnonzero(np.isin(clause, list(self.residues)))
        failed, settled = judge_points(event[asked], clause[asked], box, self.residues.__getitem__)
        kept[asked[failed]] = False
        for i in asked[~settled].tolist():
            kept[i] = self._holds(int(clause[i]), values(int(event[i])), failures)
        return event[kept], clause[kept]

    def _holds(self, clause: int, values: Values, failures: Failures | None) -> bool:
        """Whether the residue of a clause holds."""
        for residue in self.residues.get(clause, ()):
            verdict = residue.test(values)
            if not verdict:
                if verdict is None and failures is not None:
                    failures[self.names[int(self.owner(np.array([clause], np.int32))[0])]] += 1
                return False
        return True

    def columns(self) -> ClauseColumns:
        """All clauses, in order."""
        parts = [home.columns() for home in self.parts.values()]
        if not parts:
            return NO_CLAUSES
        order = np.concatenate([rows for rows, _ in parts])
        return gather_clauses(concat_clauses([clauses for _, clauses in parts], [0] * len(parts)), np.argsort(order))

    def rows(self) -> Rows:
        return Rows(self.table, self.columns(), self._residue_sources)

    @property
    def nbytes(self) -> int:
        return int(
            self.table.nbytes
            + sum(home.nbytes for home in self.parts.values())
            + (0 if self._owner is None else self._owner.nbytes)
        )

    def check(self) -> None:
        ids = self.table["id"].to_pylist()
        assert ids == sorted(set(ids)), "ids ascend and are distinct"
        assert self._owner is None or np.all(np.diff(self._owner) >= 0), "owners ascend"
        members = np.sort(np.concatenate([NO_ROWS, *(home.rows for home in self.parts.values())]))
        assert np.array_equal(members, np.arange(self.clause_count)), "every clause has one home"
        for home in self.parts.values():
            home.check()

    def write(self, path: Path) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        arrays: dict[str, NDArray[Any]] = {"table": np.frombuffer(sink.getvalue(), np.uint8)}
        if self._owner is not None:
            arrays["owner"] = self._owner
        arrays["residues"] = np.frombuffer(json.dumps(list(self._residue_sources.items())).encode(), np.uint8)
        for name, home in self.parts.items():
            arrays |= {f"{name}/{part}": array for part, array in home.arrays().items()}
        write_arrays(
            path, {"born": self.born, "subscriptions": len(self), "clauses": self.clause_count, "homes": list(self.parts)}, arrays
        )

    @classmethod
    def open(cls, schema: Schema, path: Path, *, verify: bool = True, sum: int | None = None) -> Segment:
        facts, arrays = read_arrays(path, verify=verify, sum=sum)
        table = pa.ipc.open_file(pa.py_buffer(arrays["table"])).read_all()
        residues = {clause: tuple(sources) for clause, sources in json.loads(arrays["residues"].tobytes())}
        return cls(schema, table, mapped_homes(facts["homes"], arrays), residues, arrays.get("owner"), facts["born"])


def near_rows(table: pa.Table, clauses: ClauseColumns) -> NDArray[np.bool_]:
    """Which subscriptions are nothing but an ideal point, as `rank.nearness` says."""
    near = np.zeros(len(table), np.bool_)
    if not {"by", "window"} <= set(table.column_names):
        return near
    asks = (np.diff(clauses.pred_start) > 0) | (np.diff(clauses.word_start) > 0)
    asks |= np.isfinite(clauses.box).any(axis=1) | clauses.residue
    pure = (np.bincount(clauses.owner, minlength=len(table)) == 1) & (np.bincount(clauses.owner, asks, minlength=len(table)) == 0)
    pure &= table["by"].is_valid().to_numpy() & table["window"].is_valid().to_numpy()
    for name in ("expires", "alpha", "per"):
        if name in table.column_names:
            pure &= table[name].is_null().to_numpy()
    rows = np.flatnonzero(pure)
    ks = table["k"].take(pa.array(rows)).to_pylist() if "k" in table.column_names else [None] * len(rows)
    named = zip(*(table[name].take(pa.array(rows)).to_pylist() for name in ("by", "window")), ks, strict=True)
    near[rows] = [window not in CALENDAR and point_of(by, k) is not None for by, window, k in named]
    return near
