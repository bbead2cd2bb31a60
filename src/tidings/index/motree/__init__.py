"""The MO-Tree [motree]: Boolean ranges in both directions, where items come, go and move.

Read `cells` and `axes` (where an item lives), `partition` (how wide cells should be), `directory` and `slots`, `rows`, `walk`,
`tree` (subscriptions), `event_tree` (live events), `inspection`. May import `packed`.
"""
