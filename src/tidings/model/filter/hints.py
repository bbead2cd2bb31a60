"""What is wrong with a filter's text, in the words of who wrote it: where, what is expected there, and what was probably meant.

cql2 names the rules of its grammar; here each group of them has a name that needs no grammar. Habits of other languages, as `==`
and `&&`, are looked for outside of quotations, and the first that is found is told with its column.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_VALUE = "a value: an attribute, a number, a text in 'single quotes' or a group"
_EXPECTED = (
    (frozenset({"Identifier", "DECIMAL", "SingleQuotedString"}), _VALUE),
    (frozenset({"And", "Or"}), "AND, OR, an operator or the end"),
    (frozenset({"NotFlag"}), "NULL, or NOT before LIKE, IN, BETWEEN or NULL"),
    (frozenset({"Add", "Multiply"}), "AND, as in BETWEEN 1 AND 5, or arithmetic"),
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_HABITS = (
    ("==", "="),
    ("&&", "AND"),
    ("||", "OR"),
    ("=<", "<="),
    ("=>", ">="),
    ("<=>", "="),
    ("!", "NOT, or <> for not equal"),
    ("`", "nothing, or double quotes, around an attribute"),
    ("≤", "<="),
    ("≥", ">="),
    ("≠", "<>"),
    ("\u2018", "' around a text"),
    ("\u2019", "' around a text"),
    ("\u201c", "' around a text"),
)
_AFTER = re.compile(r"(?:[=<>(,]|\b(?:like|and|between))\s*$", re.IGNORECASE)


def expected_in_words(message: str) -> str:
    """What cql2 expected, `message` being its list of rules."""
    rules = set(re.findall(r"\w+", message))
    for some, words in _EXPECTED:
        if some <= rules:
            return f"expected {words}"
    return message or "not CQL2"


def hint(text: str) -> str | None:
    """What was probably meant, with the place; None if nothing looks familiar."""
    bare = _QUOTED.sub(lambda found: " " * len(found[0]), text)
    for quote in ("'", '"'):
        if quote in bare:
            return f"the quotation that begins at {_place(text, bare.index(quote))} is never closed"
    found = [(bare.index(habit), -len(habit), habit, meant) for habit, meant in _HABITS if habit in bare]
    found = [one for one in found if one[2] != "!" or bare[one[0] : one[0] + 2] != "!="]
    if found:
        at, _, habit, meant = min(found)
        return f"write {meant} for {habit} at {_place(text, at)}"
    open_at: list[int] = []
    for at, character in enumerate(bare):
        if character == "(":
            open_at.append(at)
        elif character == ")":
            if not open_at:
                return f"the parenthesis that closes at {_place(text, at)} was never opened"
            open_at.pop()
    return f"the parenthesis that opens at {_place(text, open_at[-1])} is never closed" if open_at else None


def unknown_attribute(name: str, known: Iterable[str], text: str | None) -> str:
    """A hint for an attribute that no schema has: a text without its quotes, or one letter wrong."""
    if text is not None:
        for found in re.finditer(rf'"{re.escape(name)}"|\b{re.escape(name)}\b', text):
            before = text[: found.start()]
            if before.count("'") % 2 == 0 and _AFTER.search(before):
                return f"; at {_place(text, found.start())} it stands where a text may: texts are in single quotes, '{name}'"
    close = difflib.get_close_matches(name, list(known), 1, 0.7)
    return f"; was {close[0]!r} meant?" if close else ""


def _place(text: str, at: int) -> str:
    row = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return f"column {column}" if "\n" not in text else f"line {row + 1}, column {column}"
