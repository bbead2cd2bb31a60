"""Windows and boards as Spark state: what of a subscriber's k is kept from one micro-batch to the next, and how it is found again.

A shard is a group of subscriptions, by a hash of their ids, whose state is one key of Spark's: one key a subscription costs
thirty times as much. Read `shard_log` first: a head, a log of steps and a packing in Spark's state, and one rule by which a
worker trusts the copy it kept. `state_format` has the bytes and their version. Then, for windows: `shard_records` (matches
packed for their shards), `window_steps` (what a micro-batch did), `shard_gates` (paces), `shard_windows` (the windows of a
shard), `window_processor` (these as Spark state). For boards: `shard_boards`, `board_processor`. Both give `notification_rows`.
Painted families: `shard_painter`, and for gateways `gateway_painter`.

Imports: `frames`, and the engine's rooms.
"""
