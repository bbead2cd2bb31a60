"""Tokens of text. Events and filters pass through the same function, so a word is found however it was written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"\w+")


def tokenize(value: str | Iterable[str], tokenizer: str) -> frozenset[str]:
    """The distinct tokens: `plain` is NFKC, casefold, split at non-word characters; `as-is` takes each text whole.

    Raises ValueError, without naming the field, when `value` is neither a string nor strings.
    """
    texts = _texts(value)
    if tokenizer == "as-is":
        return frozenset(texts)
    return frozenset(word for text in texts for word in _plain(text))


def _texts(value: str | Iterable[str]) -> list[str]:
    if isinstance(value, str):
        return [value]
    texts = list(value) if isinstance(value, Iterable) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is not a word: a string or a list of strings is accepted")
    return texts


def _plain(text: str) -> list[str]:
    # Casefolding can undo NFKC (U+0345 does), so it is normalised again: then tokenising a token gives the token itself.
    if text.isascii():
        return _WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _WORD.findall(folded)
