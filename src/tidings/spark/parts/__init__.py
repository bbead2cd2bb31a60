"""Topics in lakes, built by the executors, and cut into parts where subscriptions outgrow a worker.

A part is a cut of the topic; it has nothing to do with Spark's partitions, nor with the shards of the state. Read `cut` first (in
which part a subscription stands, which parts an event visits), then `gather_codes`, `build_lake` and `match_parts`.

Imports: `frames` and `state`, and the engine's rooms.
"""
