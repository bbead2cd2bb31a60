"""What is done to a topic for hours: `python -m tests.soak --minutes 20`, again and again; counts add up in `reliability/`.

`kinds` are the ways of harming it, each a function of a seed that raises when a promise is broken and gives what it counted;
`record` keeps the totals and writes `docs/reliability.md` of them. `test_soak` runs each kind once, briefly, with the other tests.
"""
