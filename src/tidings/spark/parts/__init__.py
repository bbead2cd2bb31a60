"""Topics whose subscriptions outgrow a worker, cut into parts: each a topic's folder of its own, mapped where its events are
matched.

A part is a cut of the topic, for good; it has nothing to do with Spark's partitions, nor with the shards of the state. Read
`cut` first (in which part a subscription stands, which parts an event visits), then `build_parts` and `match_parts`.

Imports: `frames` and `state`, and the engine's rooms.
"""
