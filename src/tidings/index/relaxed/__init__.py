"""Relaxed matching [ranked, section 4]: the k subscriptions that an event suits best, although not all they ask holds.

Read `terms` (what a clause weighs), `bounds` (what it can weigh at most), `relaxed_index`. May import `packed`.
"""
