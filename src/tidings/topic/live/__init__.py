"""The live events of a topic: what `search`, `replay`, previews and changed subscriptions look through.

Read `live_events` (what is live, and how it is found), then `live_chunks` (how it is kept) and `tree_axes` (how its tree is cut).
May import match and what is below it; knows no subscriptions, windows or boards.
"""
