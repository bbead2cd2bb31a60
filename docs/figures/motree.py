"""MO-Tree cells on one axis: the overlapping cells of each level, where an interval lives, and which cells a value visits."""

from __future__ import annotations

from docs.figures.canvas import BLUE, GROUND, INK, ORANGE, SOFT, sheet, svg
from tidings.index.motree.cells import ABSENT, GRAIN, interval_cells, make_cells, narrow_levels, range_steps, uniform_axis

DOMAIN = 0.0, 1000.0
INTERVAL = 330.0, 410.0
VALUE = 400.0


def draw() -> str:
    axis = uniform_axis(0, *DOMAIN, narrow_levels())
    levels = interval_cells(axis)
    cells = make_cells([axis], [levels])
    first, last = range_steps(cells, 0, *INTERVAL)
    at, _ = range_steps(cells, 0, VALUE, VALUE)
    home = int(cells.home[0, first, last])
    visited = int(cells.begun[0, at] & cells.open[0, at])
    figure, (axes,) = sheet(7.2, 3.9)
    number, row, ticks = 0, 0.0, []
    for depth, level in enumerate(levels):
        rows = min(len(level), 3)
        ticks.append((row + (rows - 1) / 2, f"level {depth + 1}: {len(level)}"))
        for place, (begin, stop) in enumerate(level):
            y, left, right = row + place % rows, begin / GRAIN, (min(stop, GRAIN - 1) + 1) / GRAIN
            lived, met = number == home, bool(visited >> number & 1)
            axes.barh(
                y,
                (right - left) * DOMAIN[1],
                left=left * DOMAIN[1],
                height=0.72,
                color=ORANGE if lived else BLUE if met else GROUND,
                alpha=0.9 if lived else 0.45 if met else 1,
                edgecolor=SOFT,
                lw=0.8,
            )
            number += 1
        row += rows + 0.6
    axes.plot(INTERVAL, [row, row], color=ORANGE, lw=5, solid_capstyle="round")
    wanted = f"a filter's interval [{INTERVAL[0]:g}, {INTERVAL[1]:g}] lives in the orange cell"
    axes.text(INTERVAL[1] + 15, row, wanted, va="center", fontsize=9)
    axes.axvline(VALUE, color=INK, lw=1, ls=(0, (3, 3)))
    axes.text(
        VALUE + 8, -0.95, f"an event's value {VALUE:g} visits {visited.bit_count()} of {number} cells", va="center", fontsize=9
    )
    axes.set(xlim=DOMAIN, ylim=(row + 0.7, -1.4), xlabel="value of the attribute", ylabel="cells")
    axes.set_yticks([y for y, _ in ticks], [label for _, label in ticks])
    assert levels[-1] == [(0, ABSENT)], "the last level is one cell for everything"
    return svg(figure)
