"""CQL2 text or JSON -> a tree in cql2's JSON form: dicts such as `{"op", "args"}` and `{"property"}`, numbers, strings, lists.

The `cql2` package parses; of a text whose shape is known only the literals are read (`templates`). Three of its habits are met
before it is called. It recurses on the machine's stack, so a long chain or a deep nest ends the process: nesting and chains are
measured first. A parenthesis that does not parse as a group is tried again as a list, so a mistake inside n parentheses costs 2**n:
groups of a text with many parentheses are parsed one by one. And it takes no whole number beyond 64 bits: these become floats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import cql2

from tidings.errors import FilterError, shown
from tidings.model.filter.hints import expected_in_words, hint
from tidings.model.filter.templates import parse_shaped
from tidings.model.values.limits import TEXT_LIMIT, has_surrogate, limited

Node = Any
SIZE_LIMIT = TEXT_LIMIT
"""Characters of a filter's text; of a dict, of the JSON that it is written down as."""
DEPTH_LIMIT = 200
CONNECTIVE_LIMIT = 2_000
"""ANDs and ORs of one text: cql2 recurses once for each."""
_LIST_DEPTH_LIMIT = 12
_LARGEST = 2**53
"""Whole numbers up to here are taken as they are."""
_SHORT, _FEW = 500, 12
"""A text this short with this few parentheses cannot harm the parser and goes straight to it."""

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\W\d][\w.:]*|[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?|<>|!=|<=|>=|[-+*/%^<>=(),'"]""", re.UNICODE
)
_SYMBOLS = frozenset({"+", "-", "*", "/", "%", "^", "<", ">", "=", "<>", "!=", "<=", ">=", "div", "not", "like", "between"})
_BEFORE_GROUP = _SYMBOLS | {"and", "or"}
_CHAINING = _SYMBOLS | {"in", "is"}
_WHERE = re.compile(r"-->\s*(\d+):(\d+)")
_EXPECTED = re.compile(r"=\s*(expected .*)", re.DOTALL)


def parse_filter(source: str | Mapping[str, Any]) -> Node:
    """The tree of a filter; FilterError when it is too long, too deep or not CQL2."""
    if isinstance(source, str):
        _check_size(len(source), "characters")
        if has_surrogate(source):
            raise FilterError(f"the filter {shown(source)} holds half a surrogate pair: a string of Unicode characters is accepted")
        text = source.strip()
        if not text:
            raise FilterError("the filter is empty: CQL2 text or JSON is accepted, TRUE matches everything")
        return _parse_json(source) if text[0] in "{[" else parse_text(text)
    if isinstance(source, Mapping):
        return _canonical(source)
    raise FilterError(f"a filter of type {type(source).__name__}: CQL2 text, CQL2 JSON text or a dict is accepted")


def parse_text(text: str) -> Node:
    if len(text) <= _SHORT and text.count("(") <= _FEW:
        return parse_shaped(text, _parse_short)
    tree = _Groups(text).parse()
    check_depth(tree)
    return tree


def _parse_short(text: str) -> Node:
    tree = _parse_piece(text)
    if len(text) > DEPTH_LIMIT:
        check_depth(tree)
    return tree


def check_depth(tree: Node) -> None:
    """FilterError when operators nest deeper than DEPTH_LIMIT or values are too many; never recurses."""
    level, depth, count = [tree], 0, 0
    while level:
        depth += 1
        count += len(level)
        _check_size(count, "values")
        # Three container levels a nested operator: the dict, its args, and at most one list inside.
        if depth > 3 * DEPTH_LIMIT:
            too_deep()
        level = [child for node in level for child in _children(node)]
    _check_operator_depth(tree)


def _check_operator_depth(tree: Node) -> None:
    level, depth = [tree] if isinstance(tree, Mapping) else [], 0
    while level:
        depth += 1
        if depth > DEPTH_LIMIT:
            too_deep()
        level = [child for node in level for child in _operands(node)]


def _operands(node: Mapping[str, Any]) -> list[Node]:
    args = node.get("args")
    return [child for child in args if isinstance(child, Mapping) and "args" in child] if isinstance(args, list | tuple) else []


def _has_large(tree: Node) -> bool:
    level = [tree]
    while level:
        if any(type(node) is int and not -_LARGEST <= node <= _LARGEST for node in level):
            return True
        level = [child for node in level for child in _children(node)]
    return False


def _with_floats(node: Node) -> Node:
    """The tree with every whole number that cql2 cannot take as a float."""
    if isinstance(node, Mapping):
        return {key: _with_floats(child) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [_with_floats(child) for child in node]
    if type(node) is not int or -_LARGEST <= node <= _LARGEST:
        return node
    try:
        return float(node)
    except OverflowError:
        raise FilterError(f"the filter holds the number {shown(node)}: a number that a float64 can hold is accepted") from None


def _children(node: Node) -> list[Node]:
    if isinstance(node, Mapping):
        return list(node.values())
    return list(node) if isinstance(node, list | tuple) else []


def _parse_json(source: str) -> Node:
    try:
        tree = json.loads(source, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        offset = len(source[: error.pos].encode())
        raise FilterError(f"the filter is broken JSON at byte {offset}: {error.msg}") from None
    except RecursionError:
        too_deep()
    except ValueError as error:
        raise FilterError(f"the filter is broken JSON: {error}") from None
    return _canonical(tree)


def _canonical(tree: Any) -> Node:
    """cql2's own reading of a JSON tree: operators in one spelling, chains of AND and OR flat."""
    check_depth(tree)
    try:
        return cql2.Expr(tree).to_json()
    except UnicodeEncodeError:
        raise FilterError("the filter holds half a surrogate pair: strings of Unicode characters are accepted") from None
    except Exception as error:  # cql2 raises Exception itself, and what Python's own values raise on their way into it
        if _has_large(tree):
            return _canonical(_with_floats(tree))
        raise FilterError(f"the filter is not CQL2 JSON: {str(error).strip()}") from error


def _parse_piece(text: str) -> Node:
    try:
        return cql2.parse_text(text).to_json()
    except Exception as error:  # cql2 raises ParseError, Exception itself on coordinates, UnicodeEncodeError on a lone surrogate
        raise FilterError(_sentence(text, str(error))) from error


def _sentence(text: str, message: str) -> str:
    where, expected = _WHERE.search(message), _EXPECTED.search(message)
    if where is None:
        return f"the filter does not parse: {' '.join(message.split())[:200]}"
    row, column = int(where[1]), int(where[2])
    line = text.splitlines()[row - 1] if row <= len(text.splitlines()) else ""
    what = expected_in_words(" ".join(expected[1].split())[:160] if expected else "")
    meant = hint(text)
    told = f"{what}; {meant}" if meant else what
    return f"the filter does not parse at line {row}, column {column}, near {line[max(column - 11, 0) : column + 9]!r}: {told}"


class _Groups:
    """A long text, parsed one parenthesised group at a time: in what surrounds it a group is a property with a name of its own."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name = "group"
        while self.name in text:
            self.name += "x"
        self.trees: list[Node] = []

    def parse(self) -> Node:
        """One pass over the tokens with a stack of open parentheses: (pieces before, start, is a group, chain so far)."""
        text, pieces, start, connectives, chain, nest = self.text, list[str](), 0, 0, 0, 0
        stack: list[tuple[list[str], int, bool, int]] = []
        previous, whole = "", True
        for token in _TOKEN.finditer(text):
            word = token[0].lower()
            if word == "(":
                group = previous in _BEFORE_GROUP or (previous in ("", "(") and whole)
                pieces.append(text[start : token.start()])
                stack.append((pieces, token.start(), whole, chain))
                pieces, start, whole, chain = [], token.end(), group, 0
                nest += 1 + stack[-1][3]
            elif word == ")":
                if not stack:
                    raise FilterError(f"the filter closes a parenthesis at character {token.start()} that was never opened")
                inner = "".join([*pieces, text[start : token.start()]])
                group = whole
                pieces, _, whole, chain = stack.pop()
                nest -= 1 + chain
                pieces.append(self._group(inner) if group else f"({inner})")
                start = token.end()
            elif word in ("and", "or", ","):
                chain, connectives = 0, connectives + (word != ",")
                whole = whole and word != ","
            elif word in _CHAINING:
                chain += 1
            elif word in ("'", '"'):
                raise FilterError(f"the filter opens a quotation at character {token.start()} that is never closed")
            if nest + chain > DEPTH_LIMIT:
                too_deep()
            if sum(not group for _, _, group, _ in stack[-_LIST_DEPTH_LIMIT - 1 :]) > _LIST_DEPTH_LIMIT:
                too_deep()
            previous = word
        if stack:
            raise FilterError(f"the filter opens a parenthesis at character {stack[-1][1]} that is never closed")
        if connectives > CONNECTIVE_LIMIT:
            raise FilterError(
                f"the filter has {connectives} ANDs and ORs: at most {CONNECTIVE_LIMIT} are accepted; IN takes a long list"
            )
        return self._filled(_parse_piece("".join([*pieces, text[start:]])))

    def _group(self, inner: str) -> str:
        self.trees.append(self._filled(_parse_piece(inner)))
        return f" {self.name}{len(self.trees) - 1} "

    def _filled(self, tree: Node) -> Node:
        """`tree` with every stand-in replaced by the group it stands for."""
        if self._stands_in(tree):
            return self.trees[int(tree["property"][len(self.name) :])]
        open_nodes = [tree]
        while open_nodes:
            node = open_nodes.pop()
            inside: list[Node] = node.get("args", []) if isinstance(node, dict) else node if isinstance(node, list) else []
            for i, child in enumerate(inside):
                if self._stands_in(child):
                    inside[i] = self.trees[int(child["property"][len(self.name) :])]
                else:
                    open_nodes.append(child)
        return tree

    def _stands_in(self, node: Node) -> bool:
        return isinstance(node, dict) and str(node.get("property", "")).startswith(self.name)


def _check_size(count: int, what: str) -> None:
    if count > SIZE_LIMIT and limited():
        raise FilterError(f"the filter has {count} {what}: at most {SIZE_LIMIT} are accepted")


def too_deep() -> NoReturn:
    raise FilterError(f"the filter nests too deep: at most {DEPTH_LIMIT} levels are accepted")


def _refuse_constant(name: str) -> float:
    """Infinities and NaN, which earlier releases took in dicts."""
    if limited():
        raise FilterError(f"the filter holds {name}: a finite number is accepted")
    return float(name)
