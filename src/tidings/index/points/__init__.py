"""Points and balls that come and go: what windows around ideal points and painted boards ask.

Read `ball_index` and `grid`; `tree` with `tree_questions`; `objects` with `object_questions`; `watchers`. May import `packed`.
"""
