"""CQL2 texts of a known shape, filled in instead of parsed again.

Programs make their filters from templates: texts that differ in nothing but numbers and strings. A text is split into its literals
and the pieces between them, which with the kinds of the literals are its *shape*. A shape that comes a second time is learnt: the
parser reads the same text with telltale literals, and where these stand in its tree, the literals of every later text of that shape
are put. So nothing here knows the grammar, and three rules make a filled tree the very one that the parser would have made:

- What might not be split as the parser splits it is not split: a text with a double quote, a backslash, a doubled or an empty
  quotation, or a lone surrogate (which the parser refuses).
- A shape is learnt only if every telltale stands in the tree once, as it is or negated, and stands as an operand, in a list of
  operands or in a BBOX (PLACES). Elsewhere a value can change the tree: the parser closes the rings of a polygon and writes the
  instants of a TIMESTAMP or an INTERVAL in its own way.
- The text that taught it, filled in, gives the tree that the parser gave.

The SHAPES that were used last are kept. Trees share the parts that have no literal in them, so nobody may change a tree.

Cost: a filled text is split once and its tree copied along the paths to its literals; a shape's first text is split and parsed, its
second parsed twice. It pays: texts of one shape with a range, a category, words and a box are compiled 2.0 to 2.4 times as fast as
when each is parsed (`benchmarks.compile`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tidings.errors import FilterError

Node = Any
Step = tuple[dict[str, Node] | list[Node], tuple[tuple[Any, int], ...]]
"""A container of a tree, and what is put where in a copy of it: (key, number of the value), ~number for its negation."""
SHAPES = 1024
PLACES = frozenset({"args", "bbox"})
"""Members of a node in which a literal may stand, or in lists of any depth inside."""
DEEPEST = 50
"""Containers round a literal; what nests deeper is not learnt."""
_LITERAL = re.compile(r"(['0-9](?:(?<=')[^']*'|(?<![\w.:'].)[0-9]*+(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+(?![\w.:])))")
"""A quotation, or a number that is no part of a name or of another number. It begins with a set of characters, by which the search
leaps from one candidate to the next."""
_NUMBER, _STRING = 73_100_027, "telltale"


def parse_shaped(text: str, parse: Callable[[str], Node]) -> Node:
    """The tree that `parse` makes of a text, or FilterError as it raises it."""
    if "''" in text or '"' in text or "\\" in text or not (text.isascii() or text.isprintable()):
        return parse(text)
    pieces = _LITERAL.split(text)
    literals = pieces[1::2]
    quoted: tuple[bool, ...] = ()
    values: list[Any]
    if "'" in text:
        quoted = tuple([literal[0] == "'" for literal in literals])
        values = [literal[1:-1] if literal[0] == "'" else float(literal) for literal in literals]
    else:
        values = [*map(float, literals)]
    shape = _shape(tuple(pieces[::2]), quoted)
    return filled(shape.steps, values) if shape.steps else shape.parsed(text, values, parse)


class Shape:
    """`steps` make a tree, innermost first; there is none before the shape is learnt, nor if it cannot be."""

    __slots__ = ("_pieces", "_quoted", "_times", "steps")

    def __init__(self, pieces: tuple[str, ...], quoted: tuple[bool, ...]) -> None:
        """`quoted` tells which literals are strings; empty when none is."""
        self.steps: tuple[Step, ...] = ()
        self._pieces = pieces
        self._quoted = quoted or (False,) * (len(pieces) - 1)
        self._times = 0

    def parsed(self, text: str, values: list[Any], parse: Callable[[str], Node]) -> Node:
        """The tree of a text of this shape by the parser; the second time the shape is learnt."""
        tree = parse(text)
        self._times = times = self._times + 1
        if times == 2:
            self.steps = self._learnt(parse)
            # Told apart by what they print: 1, 1.0 and True are equal, and so are 0.0 and -0.0.
            if self.steps and repr(filled(self.steps, [*values])) != repr(tree):
                self.steps = ()
        return tree

    def _learnt(self, parse: Callable[[str], Node]) -> tuple[Step, ...]:
        telltales = [f"{_STRING}{i}" if quoted else float(_NUMBER + i) for i, quoted in enumerate(self._quoted)]
        texts = [f"'{value}'" if isinstance(value, str) else f"{value:.0f}" for value in telltales]
        try:
            tree = parse("".join([part for pair in zip(self._pieces, [*texts, ""], strict=True) for part in pair]))
            return _steps(tree, {value: i for i, value in enumerate(telltales)})
        except (FilterError, Unfit):
            return ()


_shape = lru_cache(SHAPES)(Shape)


class Unfit(Exception):
    """A telltale stands where values may change the tree, or not exactly once."""


def filled(steps: tuple[Step, ...], values: list[Any]) -> Node:
    """The tree with these literals; `values` is used up."""
    for container, puts in steps:
        made = container.copy()
        for key, number in puts:
            made[key] = values[number] if number >= 0 else -values[~number]
        values.append(made)
    return values[-1]


def _steps(tree: Node, number_of: Mapping[Any, int]) -> tuple[Step, ...]:
    """How to make `tree` from the values that it is numbered by; a container that is made gets the next number."""
    steps: list[Step] = []
    found: list[int] = []

    def number(node: Node, fit: bool, depth: int) -> int | None:
        """The number of what stands at a node; None if it is the same in every tree."""
        if depth > DEEPEST:
            raise Unfit
        if isinstance(node, dict | list):
            members = node.items() if isinstance(node, dict) else enumerate(node)
            inner = [(key, number(child, key in PLACES if isinstance(node, dict) else fit, depth + 1)) for key, child in members]
            puts = tuple([(key, at) for key, at in inner if at is not None])
            if puts:
                steps.append((node, puts))
            return len(number_of) + len(steps) - 1 if puts else None
        known = isinstance(node, str | float) and (node in number_of or (isinstance(node, float) and -node in number_of))
        if known and not fit:
            raise Unfit
        if known:
            found.append(number_of[node] if node in number_of else number_of[-node])
            return found[-1] if node in number_of else ~found[-1]
        return None

    number(tree, False, 0)
    if sorted(found) != list(range(len(number_of))):
        raise Unfit
    return tuple(steps)
