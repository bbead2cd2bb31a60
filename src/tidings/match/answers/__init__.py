"""What becomes of hits: their order, the answers as tables and objects, relaxed and vague questions, and why.

Read `results`, `ordering`, then `relaxed`, `vague_events`, `explain` with `wording`. May import `match.store` and what is below it.
"""
