"""R^t, R^t+ and R^t++ [rttree]: boxes and words, conjunctive and by similarity.

Read `body` (the R-tree), `tokens` and `representative_tokens`, `policy` (where tokens stand), `filtering`, `reshape`, `tree`; then
`similarity` with `similarity_walk`; `home` and `price` for segments and their planner. May import `packed`.
"""
