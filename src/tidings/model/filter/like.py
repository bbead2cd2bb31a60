"""LIKE: `%` any characters, `_` one, `\\` takes the next literally.

What stands between the % of a pattern are pieces of fixed width. The first and the last are compared where they must stand; each
of the others is found leftmost after the one before, which is never worse than any other choice. A piece is a body between the
`_` at its ends, which only count. A body of characters alone is found by `str.find`; one with `_` inside by a regular expression,
or, on long texts where that might try every place anew, by Shift-And [Baeza-Yates and Gonnet 1992]: one integer holds, for each
length, whether the text read so far ends in that much of the body.

Cost: linear in the text, times a 64th of the body where it has `_` inside; `price` counts such bodies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tidings.errors import FilterError, shown

Piece = list[str | None]
"""Characters, None for any one."""
WILD_PRICE = 100
SMALL = 1 << 16
"""Characters of the text times those of the body, up to which a regular expression is searched for."""


def like_pieces(pattern: str) -> list[Piece]:
    pieces: list[Piece] = [[]]
    escaped = False
    for character in pattern:
        if escaped or character not in "%_\\":
            pieces[-1].append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None)
    if escaped:
        raise FilterError(f"the pattern {shown(pattern)} of 'like' ends in its escape character")
    return pieces


def like_price(operands: list[Any]) -> int:
    """What LIKE costs beyond one pass over a text: the bodies with `_` inside, each character of which is asked at each place."""
    strings = [operand for operand in operands[1:] if isinstance(operand, str)]
    bodies = [_body(piece)[1] for pattern in strings for piece in like_pieces(pattern)[1:-1]]
    return sum(WILD_PRICE * len(body) for body in bodies if None in body)


def like_matcher(pattern: str) -> Callable[[str], bool]:
    pieces = like_pieces(pattern)
    first, last = _standing(pieces[0]), _standing(pieces[-1])
    if len(pieces) == 1:
        width = len(pieces[0])
        return lambda text: len(text) == width and first(text, 0)
    head, tail = len(pieces[0]), len(pieces[-1])
    finders = [_finder(piece) for piece in pieces[1:-1] if piece]

    def matches(text: str) -> bool:
        end = len(text) - tail
        if end < head or not first(text, 0) or not last(text, end):
            return False
        place = head
        for find in finders:
            place = find(text, place, end)
            if place < 0:
                return False
        return True

    return matches


def _standing(piece: Piece) -> Callable[[str, int], bool]:
    """Whether a text, which is long enough, has the piece at a place."""
    runs = _runs(piece)
    return lambda text, place: all(text.startswith(run, place + offset) for offset, run in runs)


def _runs(piece: Sequence[str | None]) -> list[tuple[int, str]]:
    """(offset, characters) of what stands between the `_`."""
    runs: list[tuple[int, list[str]]] = []
    for offset, character in enumerate(piece):
        if character is not None:
            if offset == 0 or piece[offset - 1] is None:
                runs.append((offset, []))
            runs[-1][1].append(character)
    return [(offset, "".join(run)) for offset, run in runs]


def _body(piece: Piece) -> tuple[int, Piece, int]:
    """(`_` before, body, `_` after)."""
    known = [i for i, character in enumerate(piece) if character is not None]
    if not known:
        return len(piece), [], 0
    return known[0], piece[known[0] : known[-1] + 1], len(piece) - known[-1] - 1


def _finder(piece: Piece) -> Callable[[str, int, int], int]:
    """Where the leftmost occurrence inside text[place:end] ends; -1 if there is none."""
    before, body, after = _body(piece)
    runs = _runs(body)
    if len(runs) < 2:
        word = runs[0][1] if runs else ""

        def find(text: str, place: int, end: int) -> int:
            found = text.find(word, place + before, end - after) if place + before + after <= end else -1
            return found if found < 0 else found + len(word) + after

        return find
    expression = re.compile("".join("." if c is None else re.escape(c) for c in body), re.DOTALL) if len(body) <= 1000 else None
    masks = _masks(body)

    def search(text: str, place: int, end: int) -> int:
        place, end = place + before, end - after
        if expression is not None and (end - place) * len(body) <= SMALL:
            found = expression.search(text, place, end) if place <= end else None
            return -1 if found is None else found.end() + after
        stop = shift_and(masks, len(body), text, place, end)
        return stop if stop < 0 else stop + after

    return search


def _masks(body: Piece) -> tuple[dict[str, int], int]:
    """For each character the places of the body that take it, as bits; and those that take any."""
    anything = int("".join("1" if character is None else "0" for character in reversed(body)), 2)
    places: dict[str, list[int]] = {}
    for place, character in enumerate(body):
        if character is not None:
            places.setdefault(character, []).append(place)
    return {character: _bits(given, len(body)) | anything for character, given in places.items()}, anything


def _bits(places: list[int], size: int) -> int:
    digits = bytearray(b"0" * size)
    for place in places:
        digits[size - 1 - place] = ord("1")
    return int(digits, 2)


def shift_and(masks: tuple[dict[str, int], int], size: int, text: str, place: int, end: int) -> int:
    """Where the leftmost occurrence in text[place:end] ends; -1 if there is none."""
    by_character, anything = masks
    state, whole = 0, 1 << (size - 1)
    for at in range(place, end):
        state = (state << 1 | 1) & by_character.get(text[at], anything)
        if state & whole:
            return at + 1
    return -1
