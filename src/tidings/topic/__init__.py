"""The topic: what a program holds. It takes subscriptions and events in, commits them, and answers.

Read `topic` (the public calls), `publisher` (what publishing does), `live_events`, `moving`, `journal` (where changes are
committed; memory has nothing to commit), `stats`. May import match, windows, boards and what is below them; knows nothing of
disks.
"""
