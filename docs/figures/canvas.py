"""What the drawings share: a matplotlib figure as a small SVG that is the same each time and follows light and dark.

Text stays text. Three colours are names for the page's: INK, SOFT and GROUND become CSS variables, which a dark screen turns over.
"""

from __future__ import annotations

import io
import re

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, SOFT, GROUND = "#101112", "#909192", "#fdfcfb"
BLUE, ORANGE, GREEN, PURPLE, RED = "#3b7dd8", "#d9822b", "#2e9e6b", "#8e6bd1", "#cc4b4b"
COLOURS = {INK: "var(--ink)", SOFT: "var(--soft)", GROUND: "var(--ground)"}
STYLE = """<style>
svg { --ink: #1d2126; --soft: #7d8590; --ground: #ffffff; font-family: system-ui, sans-serif; }
text { fill: var(--ink); }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e7eb; --soft: #8b949e; --ground: #16191f; } }
</style>"""
SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tidings",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.facecolor": GROUND,
    "figure.facecolor": GROUND,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def sheet(width: float, height: float, columns: int = 1, ratios: tuple[float, ...] | None = None) -> tuple[Figure, list[Axes]]:
    """A figure of so many inches with axes beside each other."""
    with matplotlib.rc_context(SETTINGS):
        figure, axes = pyplot.subplots(
            1, columns, figsize=(width, height), squeeze=False, width_ratios=ratios, layout="constrained"
        )
    return figure, list(axes[0])


def bare(axes: Axes) -> Axes:
    """Without frame and ticks: for what has no scale."""
    axes.set_axis_off()
    return axes


def svg(figure: Figure) -> str:
    """The figure's SVG, from its first tag on."""
    buffer = io.StringIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # A clip path is named by where it lies in memory.
    for number, name in enumerate(dict.fromkeys(re.findall(r'id="(p[0-9a-f]{10})"', text))):
        text = text.replace(name, f"clip{number}")
    for colour, variable in COLOURS.items():
        text = text.replace(colour, variable)
    head = text.index(">") + 1
    lines = (line.rstrip() for line in f"{text[:head]}\n{STYLE}{text[head:]}".splitlines())
    return "\n".join(line for line in lines if line) + "\n"
