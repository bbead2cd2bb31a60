"""What a text in a language says, from the definition: character by character, stemmed by the pure Python snowball stemmers.

A text is a sequence of words. A word is letters, digits, _ and the characters of `keep`, as long as not all are of `keep`; every
Chinese, Japanese or Korean character is a word of its own. Upper case and, on Latin and Greek letters, accents do not count. Words
that follow each other are adjacent, whatever stands between them, but for two such characters, which must touch. An element of a
filter is such a text, in which `*` after a word asks for words that begin so, as they are written; others compare by their stems.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import snowballstemmer

GAP = None


class Said(NamedTuple):
    written: str
    stem: str
    prefix: bool = False


def is_cjk(character: str) -> bool:
    name = unicodedata.name(character, "")
    kinds = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HANGUL SYLLABLE", "IDEOGRAPHIC ITERATION")
    return name.startswith(kinds) and (character.isalnum() or name == "IDEOGRAPHIC ITERATION MARK")


def folded(text: str) -> str:
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    kept: list[str] = []
    base = ""
    for character in text:
        if "\u0300" <= character <= "\u036f" and unicodedata.name(base, "").startswith(("LATIN", "GREEK")):
            continue
        if not unicodedata.combining(character):
            base = character
        kept.append(character)
    return unicodedata.normalize("NFKC", "".join(kept))


def said(text: str, language: str | None, keep: str, filter: bool = False) -> list[Said | None]:
    """The words in order; GAP between two that are not adjacent."""
    stem = None if language in (None, "any") else snowballstemmer.stemmer(language)
    found: list[Said | None] = []
    word, last_cjk = "", -2
    text = folded(text)
    for place, character in enumerate([*text, " "]):
        cjk = is_cjk(character)
        if not cjk and (character.isalnum() or character == "_" or character in keep):
            word += character
            continue
        if word and not all(c in keep for c in word):
            prefix = filter and character == "*"
            whole = stem is None or any(c in keep for c in word)
            found.append(Said(word, word if whole or prefix else stem.stemWord(word), prefix))
            last_cjk = -2
        word = ""
        if cjk:
            if 0 <= last_cjk < place - 1:
                found.append(GAP)
            found.append(Said(character, character))
            last_cjk = place
    return found


def holds(element: str, texts: list[str], language: str | None, keep: str = "") -> bool:
    """Whether a value of these texts has what an element of a filter asks for."""
    phrases: list[list[Said]] = [[]]
    for wanted in said(element, language, keep, filter=True):
        if wanted is GAP:
            phrases.append([])
        else:
            phrases[-1].append(wanted)
    return all(any(_stands(phrase, said(text, language, keep)) for text in texts) for phrase in phrases)


def _stands(phrase: list[Said], words: list[Said | None]) -> bool:
    for first in range(len(words) - len(phrase) + 1):
        if all(_is(wanted, words[first + i]) for i, wanted in enumerate(phrase)):
            return True
    return False


def _is(wanted: Said, word: Said | None) -> bool:
    if word is GAP:
        return False
    return word.written.startswith(wanted.written) if wanted.prefix else word.stem == wanted.stem
