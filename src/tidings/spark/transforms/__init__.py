"""The calls of `tidings.spark`, one a module of the same name: what each takes, gives and refuses, and the plan that it makes.

`build` makes a topic of subscriptions, `follow` changes it by a stream. `parse` reads raw events, `match` finds who should hear
of them, `notify` lets through what windows let through, `board` keeps lists of changing objects, `paint` tells gateways of
them (`gateway_sink`). `search` goes the other way (`event_sources`, `searchable_events`). Read `match`, then `notify`; the others
are like them.

Imports: `parts`, `state`, `frames`, and the engine's rooms.
"""
