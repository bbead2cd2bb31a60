"""The words that columns of subscriptions ask for: what `filter/elements` says of each distinct text, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa

from tidings._lazy import lazily
from tidings.errors import DroppedWarning, shown
from tidings.model.columns.arrow import TableReader, Tokens, tokens_of
from tidings.model.columns.tokens import Index, numbered, tokenize_array
from tidings.model.filter.elements import dropped, element_of, refusal
from tidings.model.values.schema import Words

pc = lazily("pyarrow.compute")

_MAY_DROP = r"[^\pL\pN_\s]"
_IN_FILTERS = "words, phrases of two and prefixes of 2 to 16 characters are accepted here, longer ones in a column `filter`"


def asked_words(reader: TableReader, name: str, kind: Words) -> Tokens:
    """All words of a row's texts."""
    present, count, index, texts = reader.texts(name)
    if kind.prose:
        row = np.repeat(np.arange(len(count)), count)
        return tokens_of(present, count, index, numbered(asked_sets(reader, name, kind, texts, row, index)))
    _warn_of_dropped(name, kind, texts)
    return tokens_of(present, count, index, tokenize_array(texts, kind))


def asked_sets(reader: TableReader, name: str, kind: Words, texts: pa.Array, row: Index, index: Index) -> list[frozenset[str]]:
    """The words of each of `texts`, of which index[i] stands in row[i]. A row that asks for what words alone do not say is refused:
    a table of predicates has no place for residues."""
    _warn_of_dropped(name, kind, texts)
    elements = [element_of(kind, text) for text in texts.to_pylist()]
    wrong = [number for number, e in enumerate(elements) if e.words and (refusal(e) or not e.exact)]
    if wrong:
        bad = np.zeros(len(reader.table), np.bool_)
        bad[row[np.isin(index, wrong)]] = True
        reader.refuse(bad, lambda row: f"{name} is {shown(reader.column(name)[row].as_py())}: {_IN_FILTERS}")
    return [element.words for element in elements]


def _warn_of_dropped(name: str, kind: Words, texts: pa.Array) -> None:
    """One warning for a column, with the first text of which something is dropped."""
    if kind.name == "as-is":
        return
    some = pc.match_substring_regex(texts, _MAY_DROP) if not kind.callable else pc.is_valid(texts)
    told = [(text, element_of(kind, text)) for text in texts.filter(some).to_pylist()]
    told = [(text, element) for text, element in told if element.dropped and element.words]
    if told:
        more = f", and so in {len(told) - 1} more" if len(told) > 1 else ""
        warnings.warn(f"{dropped(name, kind, *told[0])}{more}", DroppedWarning, stacklevel=2)
