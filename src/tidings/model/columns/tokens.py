"""Tokens of many texts at once: what `text.tokenize` gives, without a Python call for ASCII text.

For ASCII, `plain` is a map of bytes: letters to lower case, digits and _ to themselves, all else to a space, and then a split. Only
texts with other characters, which need Unicode's tables, go through `tokenize` one by one.
"""

from __future__ import annotations

import string
from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.model.columns.arrays import starts
from tidings.model.columns.vocabulary import distinct_strings
from tidings.model.values.prose import analyser_of
from tidings.model.values.schema import Words
from tidings.model.values.text import tokenize

pc = lazily("pyarrow.compute")

Index = NDArray[np.int64]


def _byte_map() -> NDArray[np.uint8]:
    mapped = np.full(256, ord(" "), np.uint8)
    for character in string.ascii_letters + string.digits + "_":
        mapped[ord(character)] = ord(character.lower())
    return mapped


_LOWERED = _byte_map()


def tokenize_array(texts: pa.Array, kind: Words) -> tuple[Index, Index, list[str]]:
    """Ragged (start, token number) by text, and the distinct tokens; a token may repeat within a text. `texts` has no nulls."""
    tokenizer = kind.name
    if kind.prose:
        return numbered([analyser_of(kind).tokens(text) for text in texts.to_pylist()])
    if tokenizer == "as-is":
        return np.arange(len(texts) + 1), *distinct_strings(texts)
    texts = texts.cast(pa.string())
    ascii = pc.string_is_ascii(texts).to_numpy(zero_copy_only=False)
    number, token, distinct = _ascii_tokens(texts.filter(pa.array(ascii)))
    text = np.flatnonzero(ascii)[number]
    if not ascii.all():
        others = np.flatnonzero(~ascii)
        sets = [tokenize(other, tokenizer) for other in texts.take(pa.array(others)).to_pylist()]
        known = {word: place for place, word in enumerate(distinct)}
        more = [known.setdefault(word, len(known)) for words in sets for word in words]
        text = np.concatenate([text, np.repeat(others, [len(words) for words in sets])])
        order = np.argsort(text, kind="stable")
        text, token, distinct = text[order], np.concatenate([token, np.array(more, np.int64)])[order], list(known)
    return starts(np.bincount(text, minlength=len(texts))), token, distinct


def numbered(sets: Sequence[Set[str]]) -> tuple[Index, Index, list[str]]:
    """Ragged (start, token number) of sets of tokens, and the distinct tokens."""
    known: dict[str, int] = {}
    token = np.fromiter((known.setdefault(word, len(known)) for words in sets for word in words), np.int64)
    return starts(np.array([len(words) for words in sets], np.int64)), token, list(known)


def _ascii_tokens(texts: pa.StringArray) -> tuple[Index, Index, list[str]]:
    """(text, token number) of every token, by text, and the distinct tokens."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    lowered = _LOWERED[np.frombuffer(data, np.uint8)] if data is not None else np.empty(0, np.uint8)
    pieces = pc.ascii_split_whitespace(pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(lowered)))
    text = np.repeat(np.arange(len(texts)), pc.list_value_length(pieces).to_numpy(zero_copy_only=False))
    words = pieces.flatten()
    full = pc.not_equal(words, "")
    token, distinct = distinct_strings(words.filter(full))
    return text[full.to_numpy(zero_copy_only=False)], token, distinct
