"""Words in a filter: what each text of a list asks for, by the tokenizer of its attribute, and what the tokenizer drops of it.

To an attribute whose words are a set, a text asks for all of its words, anywhere; in a language it is a phrase (`values/prose.py`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from tidings.errors import DroppedWarning, FilterError, shown
from tidings.model.filter.syntax import Node
from tidings.model.values.prose import SHORTEST, Element, Prose, analyser_of, stands, stems_of
from tidings.model.values.schema import Schema, Words
from tidings.model.values.text import tokenize

ELEMENTS = 4096
"""Texts whose elements are remembered."""
_DROPPED = re.compile(r"(?<!\S)[^\w\s]+|[^\w\s]++(?!\w)|\*+")
"""What joins two words (wi-fi) only parts them."""
_KEPT = frozenset("+#@&$%")


def read_elements(schema: Schema, op: str, name: str, node: Node) -> list[Element]:
    """What each text of a list of words asks for."""
    kind = schema[name]
    assert isinstance(kind, Words)
    result = []
    for text in node if isinstance(node, list) else [node]:
        if not isinstance(text, str):
            raise FilterError(f"operator {op!r}: attribute {name!r} takes strings, not {shown(text)}")
        element = element_of(kind, text)
        refused = refusal(element)
        if refused:
            raise FilterError(f"operator {op!r}: {text!r} {refused}")
        result.append(element)
    return result


@lru_cache(ELEMENTS)
def element_of(kind: Words, text: str) -> Element:
    if kind.prose:
        return analyser_of(kind).element(text)
    dropped = "" if kind.name == "as-is" else "".join(_DROPPED.findall(text))
    return Element(tokenize(text, kind.name), (), True, dropped)


def refusal(element: Element) -> str:
    """What is wrong with it; nothing if it is well."""
    if not element.words:
        return "holds no word"
    for phrase in element.phrases:
        for wanted in phrase:
            if wanted.prefix and len(wanted.text) < SHORTEST:
                return f"begins with {wanted.text!r}: a prefix has {SHORTEST} characters at least"
    return ""


def test_of(kind: Words, element: Element) -> Callable[[frozenset[str]], bool]:
    """Whether a value has what an element asks for."""
    words = element.words
    if element.exact:
        return words.issubset

    def test(value: frozenset[str]) -> bool:
        assert isinstance(value, Prose)
        return words.issubset(value) and all(stands(kind, phrase, value) for phrase in element.phrases)

    return test


def words_alone(kind: Words, value: frozenset[str]) -> frozenset[str]:
    """A value's words without the other tokens by which it is found."""
    return stems_of(kind, value) if isinstance(value, Prose) else value


def asked_words(op: str, kind: Words, elements: Iterable[Element]) -> frozenset[str]:
    """The words that A_EQUALS and A_CONTAINEDBY compare with."""
    asked: set[str] = set()
    for element in elements:
        if element.has_prefix:
            raise FilterError(f"operator {op!r} compares whole words: a prefix is accepted by A_CONTAINS and A_OVERLAPS")
        asked |= element.stems if kind.prose else element.words
    return frozenset(asked)


def warn_of_dropped(schema: Schema, name: str, node: Node) -> None:
    kind = schema[name]
    assert isinstance(kind, Words)
    for text in node if isinstance(node, list) else [node]:
        element = element_of(kind, text)
        if element.dropped and element.words:
            warnings.warn(dropped(name, kind, text, element), DroppedWarning, stacklevel=2)


def dropped_of(schema: Schema, node: Node) -> Iterator[str]:
    """The sentences of a filter's tree that was accepted."""
    for part in node if isinstance(node, list) else (node.get("args") or ()) if isinstance(node, dict) else ():
        yield from dropped_of(schema, part)
    if isinstance(node, dict) and str(node.get("op")).startswith("a_"):
        names = [arg["property"] for arg in node["args"] if isinstance(arg, dict)]
        kind = schema[names[0]]
        assert isinstance(kind, Words)
        for texts in [arg for arg in node["args"] if not isinstance(arg, dict)]:
            for text in texts if isinstance(texts, list) else [texts]:
                if (element := element_of(kind, text)).dropped:
                    yield dropped(names[0], kind, text, element)


def dropped(name: str, kind: Words, text: str, element: Element) -> str:
    """The sentence of a warning."""
    told = f"{name}: {shown(text)} asks for {', '.join(sorted(element.words))}; the tokenizer drops {shown(element.dropped)}"
    kept = "".join(sorted(_KEPT & {*element.dropped} if not kind.callable else ()))
    if kept:
        return f"{told} (a schema with Words(keep={kept!r}) keeps it)"
    return f"{told} (a schema with Words(language=...) knows prefixes)" if "*" in element.dropped and not kind.prose else told
