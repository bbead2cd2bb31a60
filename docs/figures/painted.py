"""A painted plane: watchers of [l, r] as points, an object's influence region as a staircase, and one change as few rectangles."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from docs.figures.canvas import BLUE, GREEN, ORANGE, PURPLE, RED, SOFT, sheet, svg
from tidings.boards.paint.paint import PaintDense, paint_each
from tidings.boards.paint.tiles import OBJECT, neighbours, paint_ir, scratch
from tidings.index.points.objects import ObjectIndex

SIDE, K = 10.0, 3
X = np.array([0.8, 1.6, 2.5, 3.3, 4.1, 4.9, 5.8, 6.6, 7.5, 8.7])
RENT = np.array([2.0, 7.0, 3.0, 6.0, 4.0, 5.0, 8.0, 1.0, 4.5, 3.5])
MOVED, DEARER = 5, 7.5
COLOURS = (BLUE, GREEN, PURPLE, ORANGE, RED)


def objects() -> ObjectIndex:
    index = ObjectIndex()
    index.insert_many(np.arange(len(X)), X, RENT)
    return index


def staircase(number: int) -> np.ndarray:
    """The tiles (2 x 2 corners each) of the watchers that have the object among their best K."""
    index, room = objects(), scratch(K)
    x, y = float(X[number]), float(RENT[number])
    wests, easts = neighbours(index.arrays, x, y, float(number), K, room.west, room.east)
    count = paint_ir(room.west, wests, room.east, easts, x, K, room.tile, room.strip)
    return room.tile[:count].copy()


def draw() -> str:
    rng = np.random.default_rng(5)
    ends = np.sort(rng.uniform(0, SIDE, (70, 2)), axis=1)
    index = objects()
    (messages,) = paint_each(index, [PaintDense(index, K)], MOVED, float(X[MOVED]), DEARER)
    figure, (left, right) = sheet(7.6, 4.0, 2)
    for tile in staircase(MOVED):
        paint(left, tile, ORANGE)
    left.set_title(f"Who has flat {MOVED} (rent {RENT[MOVED]:g}) among their best {K}", fontsize=9.5)
    told = sorted({int(message[OBJECT]) for message in messages})
    for message in messages:
        paint(right, message[:4].reshape(2, 2), COLOURS[told.index(int(message[OBJECT])) % len(COLOURS)])
    right.set_title(f"Its rent becomes {DEARER:g}: {len(messages)} messages", fontsize=9.5)
    for axes in (left, right):
        axes.plot(*ends.T, "o", ms=2.6, color=SOFT)
        axes.plot([0, SIDE], [0, SIDE], color=SOFT, lw=0.8)
        axes.plot(X, X, "D", ms=4, color=SOFT, mfc="none")
        axes.set(xlim=(0, SIDE), ylim=(0, SIDE), xlabel="l: at least so large", aspect="equal")
    left.set_ylabel("r: at most so large")
    for number in told:
        right.plot([], [], "s", color=COLOURS[told.index(number) % len(COLOURS)], label=f"of flat {number}")
    right.legend(loc="lower right", fontsize=8, frameon=False)
    return svg(figure)


def paint(axes: Axes, tile: np.ndarray, colour: str) -> None:
    low, high = np.clip(tile, 0, SIDE)
    axes.add_patch(Rectangle((low[0], low[1]), *(high - low), facecolor=colour, edgecolor=colour, alpha=0.35, lw=1.2))
