"""Filling the cache of compiled kernels before anybody needs them: what `tidings warm` does.

Read `rehearsal` (every call once, in plain Python, to hear which kernels it wants and for which types), then `warming` (they are
compiled by one process a core). It imports the topic and what is durable, as a user would.
"""
