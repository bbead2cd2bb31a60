"""Texts in a language: their words in order, and the tokens by which they are found.

A text is folded (NFKC, casefold, Latin and Greek letters without their accents) and cut into words: runs of letters, digits, _ and
the characters of `keep`, which alone are no word. Each Chinese, Japanese or Korean character is a word of its own. A word is
compared by its stem; one with a character of `keep` in it is its own stem. Accents go first, so that a word is found with and
without them whatever its stemmer makes of them.

A value is the set of all tokens by which it is found:

| token     | of                                                                                       |
|-----------|------------------------------------------------------------------------------------------|
| `merger`  | each word: its stem                                                                      |
| `new york` | each two adjacent words: their stems. Two characters of CJK are adjacent if they touch: bigrams |
| `merg*`   | each word: its first SHORTEST to LONGEST characters, as it is written                     |

So a word, a phrase of two and a prefix are tokens like all others to every index, in every room, and nothing is looked at in Python
but longer phrases (their pairs are found, their order is a residue) and prefixes that are longer or stand in a phrase.

A callable as tokenizer gives the words itself: they are adjacent in its order, and there are no prefixes.

Cost: some 5 us a word in a batch (`benchmarks.everyday`), most of it for the sets and the numbers of their tokens; a
text of 100 words has 200 to 600.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from tidings._lazy import lazily
from tidings.errors import SchemaError
from tidings.model.values.schema import ANY_LANGUAGE, Words, tokenizer_named

Stemmer = lazily("Stemmer")

SHORTEST, LONGEST = 2, 16
"""Characters of a prefix that is a token."""
CACHED = 2**16
_CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_MARKED = re.compile("([a-z\u00df-\u024f\u0250-\u02af\u0370-\u03ff\u1e00-\u1fff])[\u0300-\u036f]+")
GAP = None
Said = tuple[str, str] | None
"""A word: its stem, and as it is written; GAP between two that are not adjacent."""


class Prose(frozenset[str]):
    """The tokens of a value, and the texts that it was given as. Equal to another of the same texts only."""

    texts: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prose) and self.texts == other.texts

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.texts)


class Wanted(NamedTuple):
    """A word of a phrase: a stem, or the beginning of a word as it is written."""

    text: str
    prefix: bool

    def is_of(self, said: Said) -> bool:
        return said is not GAP and (said[1].startswith(self.text) if self.prefix else said[0] == self.text)


Phrase = tuple[Wanted, ...]


class Element(NamedTuple):
    """What a text of a filter asks for: `words`, which are tokens, and, if these do not say it all, every one of `phrases`.
    `dropped` is what of it has no meaning."""

    words: frozenset[str]
    phrases: tuple[Phrase, ...]
    exact: bool
    dropped: str

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(wanted.text for phrase in self.phrases for wanted in phrase)

    @property
    def has_prefix(self) -> bool:
        return any(wanted.prefix for phrase in self.phrases for wanted in phrase)


def prose_of(kind: Words, texts: Iterable[str]) -> Prose:
    given = tuple(texts)
    analyser = analyser_of(kind)
    value = Prose(token for text in given for token in analyser.tokens(text))
    value.texts = given
    return value


def texts_of(value: frozenset[str]) -> list[str]:
    """What a value of a Words is written as, so that it reads back as itself."""
    return list(value.texts) if isinstance(value, Prose) else sorted(value)


@cache
def analyser_of(kind: Words) -> Analyser:
    return Named(kind) if kind.callable else Analyser(kind)


class Analyser:
    def __init__(self, kind: Words) -> None:
        self._stem = stemmer_of(kind.language)
        self._keep = frozenset(kind.keep)
        letters = rf"\w{re.escape(kind.keep)}"
        self._ascii = re.compile(rf"[{letters}]+")
        self._word = re.compile(rf"(?=\w)[{_CJK}]|(?:(?![{_CJK}])[{letters}])+")
        self._cjk = re.compile(f"[{_CJK}]")
        self._known = lru_cache(CACHED)(self._made)

    def tokens(self, text: str) -> set[str]:
        """Everything by which a text is found."""
        found: set[str] = set()
        before = ""
        for said in self._words(folded(text)):
            if said is GAP:
                before = ""
                continue
            stem, all = self._known(said)
            found.update(all)
            if before:
                found.add(f"{before} {stem}")
            before = stem
        return found

    def sequence(self, text: str) -> list[Said]:
        return [GAP if word is GAP else (self._known(word)[0], word) for word in self._words(folded(text))]

    def element(self, text: str) -> Element:
        """What it asks for of a filter; `*` after a word makes it a prefix."""
        text = folded(text)
        phrases: list[list[Wanted]] = [[]]
        rest, last = [], 0
        for word, start, end in self._spans(text):
            between = text[last:start]
            if not last or any(map(str.isspace, between)):  # what joins two words only parts them
                rest.append(between)
            last = end
            if word is GAP:
                phrases.append([])
            elif text[end : end + 1] == "*":
                last += 1
                # What begins with a character of CJK is what has it: there are no longer words.
                phrases[-1].append(Wanted(word, not self._cjk.fullmatch(word)))
            else:
                phrases[-1].append(Wanted(self._known(word)[0], False))
        dropped = "".join(("".join(rest) + text[last:]).split())
        return asked([tuple(phrase) for phrase in phrases if phrase], dropped)

    def _words(self, text: str) -> Iterator[str | None]:
        if text.isascii():
            for word in self._ascii.findall(text):
                if not self._keep or not self._keep.issuperset(word):
                    yield word
            return
        for word, _, _ in self._spans(text):
            yield word

    def _spans(self, text: str) -> Iterator[tuple[str | None, int, int]]:
        """Each word of a folded text, with where it begins and ends."""
        touching = -1
        for found in (self._ascii if text.isascii() else self._word).finditer(text):
            word, (start, end) = found[0], found.span()
            if self._keep.issuperset(word):
                continue
            is_cjk = self._cjk.match(word) is not None
            if is_cjk and 0 <= touching < start:
                yield GAP, start, start
            touching = end if is_cjk else -1
            yield word, start, end

    def _made(self, word: str) -> tuple[str, tuple[str, ...]]:
        """The stem of a word, and all tokens by which it is found."""
        stem = word if not self._keep.isdisjoint(word) else self._stem(word)
        return stem, (stem, *(f"{word[:size]}*" for size in range(SHORTEST, min(len(word), LONGEST) + 1)))


class Named(Analyser):
    """Words as a callable gives them."""

    def __init__(self, kind: Words) -> None:
        self._name, self._call = kind.name, tokenizer_named(kind.name)

    def tokens(self, text: str) -> set[str]:
        words = self._given(text)
        return {*words, *(f"{a} {b}" for a, b in pairwise(words))}

    def sequence(self, text: str) -> list[Said]:
        return [(word, word) for word in self._given(text)]

    def element(self, text: str) -> Element:
        phrase = tuple(Wanted(word, False) for word in self._given(text))
        dropped = " ".join(piece for piece in text.split() if not self._given(piece))
        return asked([phrase] if phrase else [], dropped)

    def _given(self, text: str) -> list[str]:
        given: Any = self._call(text)
        words = [*given] if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        for word in words:
            if not isinstance(word, str) or not word or any(map(str.isspace, word)):
                raise SchemaError(f"the tokenizer {self._name} gives {word!r}: a tokenizer gives strings without white space")
        return words


def asked(phrases: list[Phrase], dropped: str) -> Element:
    """The element of these phrases, all of which must stand in one text of the value each."""
    words: set[str] = set()
    exact = True
    for phrase in phrases:
        for place, wanted in enumerate(phrase):
            if wanted.prefix:
                words.add(f"{wanted.text[:LONGEST]}*")
                exact = exact and len(phrase) == 1 and len(wanted.text) <= LONGEST
                continue
            if place + 1 < len(phrase) and not phrase[place + 1].prefix:
                words.add(f"{wanted.text} {phrase[place + 1].text}")
            elif place == 0 or phrase[place - 1].prefix:
                words.add(wanted.text)
        exact = exact and len(phrase) <= 2
    return Element(frozenset(words), tuple(phrases), exact, dropped)


def stands(kind: Words, phrase: Phrase, value: Prose) -> bool:
    """Whether the words of a phrase follow each other in a text of the value."""
    analyser = analyser_of(kind)
    for text in value.texts:
        words = analyser.sequence(text)
        for first in range(len(words) - len(phrase) + 1):
            if all(wanted.is_of(words[first + place]) for place, wanted in enumerate(phrase)):
                return True
    return False


def stems_of(kind: Words, value: Prose) -> frozenset[str]:
    """The stems of a value's words."""
    analyser = analyser_of(kind)
    return frozenset(said[0] for text in value.texts for said in analyser.sequence(text) if said is not GAP)


def folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _MARKED.sub(r"\1", decomposed))


def stemmer_of(language: str | None) -> Callable[[str], str]:
    if language is None or language == ANY_LANGUAGE:
        return str
    own = threading.local()

    def stem(word: str) -> str:
        # A stemmer has memory of its own that two threads must not write at once.
        if not hasattr(own, "stem"):
            own.stem = Stemmer.Stemmer(language, 0).stemWord
        stemmed: str = own.stem(word)
        return stemmed

    return stem
