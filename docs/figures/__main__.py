"""`python -m docs.figures`: draw them all."""

from __future__ import annotations

from docs.figures.drawn import main

main()
