"""Lists around ideal points, which every event concerns, with the memory and the kernels of all windows.

Read `ideal_points` (a topic's subscriptions of this kind), `windows` (one group of them), `points` (layout), then the two ways
to find candidates: `seeking` (a list has run short) and `turned_round` (a large batch). A small batch goes through
`windows.publishing`.
"""
