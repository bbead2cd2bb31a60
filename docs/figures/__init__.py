"""The drawings of the site, made by the code that they are of: one module a drawing, each with `draw() -> str`, an SVG.

`canvas` has what they share, `__main__` writes them all to `docs/images` (`make docs` does). `tests/docs/test_figures.py` says when
one is stale.
"""
