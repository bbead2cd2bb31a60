"""The columnar form of subscriptions: predicate columns to ClauseColumns, without a Python loop over rows.

`PredicateColumns` are the validated columns, before any code is asked of a vocabulary; `encode` lays them out. A row is one clause,
or one for each element of its `about.any`, which joins the words of `about.all`. Cost: a few array passes a column.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.errors import shown
from tidings.model.columns.arrays import (
    IN,
    NO_BOX,
    RANGE,
    ClauseColumns,
    Vocabularies,
    ragged_take,
    rows_of,
    sorted_rows,
    starts,
    take_clauses,
)
from tidings.model.columns.arrow import TableReader, Tokens
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.columns.asked_words import asked_sets, asked_words
from tidings.model.values.schema import Bool, Category, Date, Number, Place, Schema, Time, Words

Mask = NDArray[np.bool_]
Float = NDArray[np.float64]


@dataclass(slots=True)
class Alternatives:
    """`about.any`: a row's elements are element[start[r]:start[r + 1]]; element e has the tokens of row e of `tokens`."""

    present: Mask
    start: NDArray[np.int64]
    element: NDArray[np.int64]
    tokens: Tokens


@dataclass(slots=True)
class PredicateColumns:
    """By attribute: (holds a predicate, closed lower end, closed upper end), strings, and the place's and the words' columns."""

    rows: int
    ranges: dict[str, tuple[Mask, Float, Float]] = field(default_factory=dict)
    within: dict[str, Tokens] = field(default_factory=dict)
    box: tuple[Mask, Float] | None = None
    all: Tokens | None = None
    any: Alternatives | None = None

    def encode(self, schema: Schema, vocabularies: Vocabularies) -> ClauseColumns:
        """One owner a row. Strings that are new to the vocabularies are added."""
        clauses = self._conjunctions(schema, vocabularies)
        if self.any is None:
            if self.all is not None:
                clauses.word_start, clauses.word = self.all.codes(vocabularies.words.add_all)
            return clauses
        count = np.where(self.any.present, np.diff(self.any.start), 1)
        owner = np.repeat(np.arange(self.rows), count)
        clauses = take_clauses(clauses, owner, owner.astype(np.int32))
        clauses.word_start, clauses.word = self._alternative_words(vocabularies, owner, self.any)
        return clauses

    def _conjunctions(self, schema: Schema, vocabularies: Vocabularies) -> ClauseColumns:
        """A clause a row, without words."""
        predicates, pool = self._predicates(schema, vocabularies)
        pred_start = np.zeros(self.rows + 1, np.int64)
        for _, _, mask, _, _ in predicates:
            pred_start[1:] += mask
        np.cumsum(pred_start, out=pred_start)
        total = int(pred_start[-1])
        dim, kind = np.empty(total, np.int16), np.empty(total, np.uint8)
        lo, hi = np.empty(total), np.empty(total)
        place = pred_start[:-1].copy()
        for dimension, kinds, mask, lower, upper in sorted(predicates, key=lambda predicate: predicate[0]):
            at = place[mask]
            dim[at], kind[at], lo[at], hi[at] = dimension, kinds[mask], lower[mask], upper[mask]
            place += mask
        box = np.tile(np.asarray(NO_BOX), (self.rows, 1))
        if self.box is not None:
            np.copyto(box, self.box[1], where=self.box[0][:, None])
        return ClauseColumns(
            owner=np.arange(self.rows, dtype=np.int32),
            pred_start=pred_start,
            pred_dim=dim,
            pred_kind=kind,
            pred_lo=lo,
            pred_hi=hi,
            pool=pool,
            box=box,
            word_start=np.zeros(self.rows + 1, np.int64),
            word=np.empty(0, np.int32),
            residue=np.zeros(self.rows, np.bool_),
        )

    def _predicates(
        self, schema: Schema, vocabularies: Vocabularies
    ) -> tuple[list[tuple[int, NDArray[np.uint8], Mask, Float, Float]], NDArray[np.int32]]:
        """(dimension, kind, holds a predicate, lo, hi) by attribute, and the pool of codes."""
        plain = np.full(self.rows, RANGE, np.uint8)
        found = [(schema.dimension[name], plain, mask, lo, hi) for name, (mask, lo, hi) in self.ranges.items()]
        pools, base = [np.empty(0, np.int32)], 0
        for name, strings in self.within.items():
            start, code = strings.codes(vocabularies.categories[name].add_all)
            count = np.diff(start)
            many = count > 1
            first = np.append(code, 0)[start[:-1]]
            offset = base + np.cumsum(np.where(many, count, 0)) - count
            kind = np.where(many, IN, RANGE).astype(np.uint8)
            found.append(
                (schema.dimension[name], kind, strings.present, np.where(many, offset, first), np.where(many, count, first))
            )
            pools.append(code[np.repeat(many, count)])
            base += len(pools[-1])
        return found, np.concatenate(pools)

    def _alternative_words(
        self, vocabularies: Vocabularies, owner: NDArray[np.int64], any: Alternatives
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The words of each clause: all of its row's, and those of its own element."""
        clause_of_element = np.flatnonzero(any.present[owner])
        start, token = ragged_take(any.tokens.start, any.element)
        code = np.fromiter(map(vocabularies.words.add, any.tokens.distinct), np.int64, len(any.tokens.distinct))
        pairs = [(clause_of_element[rows_of(start)], code[any.tokens.token[token]])]
        if self.all is not None:
            start, token = ragged_take(self.all.start, owner)
            code = np.fromiter(map(vocabularies.words.add, self.all.distinct), np.int64, len(self.all.distinct))
            pairs.append((rows_of(start), code[self.all.token[token]]))
        clause, codes = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return sorted_rows(len(owner), clause, codes)


def predicate_columns(schema: Schema) -> list[str]:
    """The names of the predicate columns that a table of subscriptions may have."""
    names = []
    for name, attribute in schema.items():
        if isinstance(attribute, Number | Time | Date):
            names += [f"{name}.lo", f"{name}.hi"]
        elif isinstance(attribute, Category):
            names.append(f"{name}.in")
        elif isinstance(attribute, Bool):
            names.append(f"{name}.is")
    names += [] if schema.place is None else [f"{schema.place}.box"]
    return names + ([] if schema.words is None else [f"{schema.words}.all", f"{schema.words}.any"])


def read_predicates(schema: Schema, reader: TableReader) -> PredicateColumns:
    columns = PredicateColumns(len(reader.table))
    for name, attribute in schema.items():
        if isinstance(attribute, Number | Time | Date) and (f"{name}.lo" in reader or f"{name}.hi" in reader):
            columns.ranges[name] = _read_range(reader, name, attribute)
        elif isinstance(attribute, Category) and f"{name}.in" in reader:
            columns.within[name] = reader.lists(f"{name}.in")
            _refuse_empty(reader, f"{name}.in", columns.within[name])
        elif isinstance(attribute, Bool) and f"{name}.is" in reader:
            wanted = reader.flags(f"{name}.is").astype(np.float64)
            columns.ranges[name] = reader.present(f"{name}.is"), wanted, wanted
    if schema.place is not None and f"{schema.place}.box" in reader:
        place = schema[schema.place]
        columns.box = reader.boxes(f"{schema.place}.box", isinstance(place, Place) and place.plane)
    if schema.words is not None:
        words = schema[schema.words]
        assert isinstance(words, Words)
        _read_words(reader, schema.words, words, columns)
    return columns


def _read_words(reader: TableReader, name: str, kind: Words, columns: PredicateColumns) -> None:
    if f"{name}.all" in reader:
        columns.all = asked_words(reader, f"{name}.all", kind)
        _refuse_empty(reader, f"{name}.all", columns.all)
    if f"{name}.any" in reader:
        columns.any = _read_alternatives(reader, f"{name}.any", kind)


def _read_range(reader: TableReader, name: str, attribute: Number | Time | Date) -> tuple[Mask, Float, Float]:
    lo = _read_end(reader, f"{name}.lo", attribute, -np.inf)
    hi = _read_end(reader, f"{name}.hi", attribute, np.inf)
    reader.refuse(lo > hi, lambda row: f"{name}.lo is {lo[row]:.17g} and {name}.hi is {hi[row]:.17g}: lo <= hi is accepted")
    return (lo > -np.inf) | (hi < np.inf), lo, hi


def _read_end(reader: TableReader, column: str, attribute: Number | Time | Date, none: float) -> Float:
    if column not in reader:
        return np.full(len(reader.table), none)
    if isinstance(attribute, Number):
        value = reader.numbers(column)
        return np.where(np.isnan(value), none, value)
    instant = reader.times(column) if isinstance(attribute, Time) else reader.dates(column)
    return np.where(instant == NONE, none, instant)


def _refuse_empty(reader: TableReader, column: str, tokens: Tokens) -> None:
    """A list that names nothing would match nothing, or everything: null says that there is no predicate."""
    bad = tokens.present & (np.diff(tokens.start) == 0)
    reader.refuse(
        bad, lambda row: f"{column} is {shown(reader.column(column)[row].as_py())}: one word at least, or null, is accepted"
    )


def _read_alternatives(reader: TableReader, column: str, kind: Words) -> Alternatives:
    lists = reader.lists(column)
    sets = asked_sets(reader, column, kind, pa.array(lists.distinct, pa.string()), rows_of(lists.start), lists.token)
    # Elements of the same tokens are one alternative.
    number: dict[frozenset[str], int] = {}
    table = np.array([number.setdefault(tokens, len(number)) for tokens in sets], np.int64)
    start, element = sorted_rows(len(reader.table), rows_of(lists.start), table[lists.token])
    token: dict[str, int] = {}
    flat = [token.setdefault(word, len(token)) for tokens in number for word in tokens]
    size = np.array([len(tokens) for tokens in number], np.int64)
    tokens = Tokens(size > 0, starts(size), np.array(flat, np.int64), list(token))
    wordless = np.zeros(len(reader.table), np.bool_)
    wordless[rows_of(start)[size[element] == 0]] = True
    bad = lists.present & ((np.diff(start) == 0) | wordless)
    reader.refuse(
        bad, lambda row: f"{column} is {shown(reader.column(column)[row].as_py())}: one word at least in every element is accepted"
    )
    return Alternatives(lists.present, start, element.astype(np.int64), tokens)
