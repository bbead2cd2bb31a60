"""Groups of arrays that kernels take together, as named tuples: their names in a file, and back; and arrays that grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.packing import readonly
from tidings.index.packed.types import Int32

Group = TypeVar("Group", bound=NamedTuple)


def named(prefix: str, group: NamedTuple) -> dict[str, NDArray[Any]]:
    """The arrays of a group, by their names in a file."""
    return {f"{prefix}{name}": array for name, array in group._asdict().items()}


def part_of(kind: type[Group], arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Group:
    """What `named` gave."""
    return kind._make(arrays[f"{prefix}{name}"] for name in kind._fields)


def taken(kind: type[Group], arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Group:
    """The same, read-only: kernels are compiled once for built and for mapped arrays."""
    return kind._make(readonly(arrays[f"{prefix}{name}"]) for name in kind._fields)


def copy_into(old: Iterable[NDArray[Any]], new: Iterable[NDArray[Any]]) -> None:
    """Copy arrays into the beginnings of longer ones, pair by pair."""
    for source, target in zip(old, new, strict=True):
        target[: len(source)] = source


@kernel
def grown(array: Int32, used: int, room: int) -> Int32:
    """The array, or a copy of twice the size when fewer than `room` places are free."""
    if used + room <= array.size:
        return array
    larger = np.empty(max(2 * array.size, used + room), np.int32)
    larger[:used] = array[:used]
    return larger
