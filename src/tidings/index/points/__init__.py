"""Points and balls that come and go: what windows around ideal points and painted boards ask.

Read `ball_index` and `grid`; `tree_arrays`, `tree` and `tree_questions`; `object_arrays`, `objects` and `object_questions`;
`watchers`. May import `packed`.
"""
