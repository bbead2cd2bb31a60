"""Who may do what: callers, their scopes, keys and tokens, and how much each may ask.

Read `callers` first. May import `hosting`.
"""
