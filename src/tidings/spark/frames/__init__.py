"""What every transform stands on: sessions, Arrow stages, and which state of a topic a task reads.

Read `pins` first (how the tasks of a micro-batch agree on one manifest), then `topic_view` (the topic as they see it),
`arrow_stage` (Python between DataFrames, and how many rows it holds at once), `match_task` (what a task of `match` does, for
topics whole and in parts), `matching` (what `match` tells `notify` of itself). `answer_columns` has the columns of every answer,
`parquet_files` lets workers read files without the JVM, `id_hash` spreads ids over shards and parts, `metrics` has names and
figures, `session` the settings and why each.

A partition is Spark's own: the rows of one task. The state and the parts of a topic are rooms of their own.

Imports: the engine's rooms (`model` to `durable`), PySpark, nothing else of `tidings.spark`.
"""
