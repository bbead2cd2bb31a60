"""Who may do what: callers, their scopes, keys and tokens, and how much each may ask.

Read `callers` (scopes), `keys` (API keys), `tokens` (JWT of an identity provider), `quotas` and `meters` (how much), `prices`
(what a subscription costs at the door). May import `hosting`.
"""
