"""All drawings, by the name of their file in `docs/images`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.figures import landing, motree, painted, rttree, sopt, window

FOLDER = Path(__file__).parent.parent / "images"
DRAWINGS: dict[str, Callable[[], str]] = {
    "landing": landing.draw,
    "sopt": sopt.draw,
    "motree": motree.draw,
    "rttree": rttree.draw,
    "painted": painted.draw,
    "window": window.draw,
}


def main() -> None:
    for name, draw in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(draw())
