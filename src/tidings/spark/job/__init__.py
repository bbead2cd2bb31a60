"""Whole jobs: a TOML file in, running queries and a report out. What `tidings run`, `check` and `submit` do.

Read `job_file` (what a job says) and `job_reading` (what is wrong with it), then `runner`: it makes the topic (`topic_making`),
warms up (`warming`), starts the queries (`queries`), and watches them (`progress`, `screen`; Spark's own words go to `spark_log`).
At the end there is a `report`: `stories` has who heard what and why, `page` writes it, with `drawings`, `map_drawing` and what
`land` describes. `dry_run` shows what a job would do. `submit` packs this environment for a cluster that lacks it,
`submitted_job` is the program that runs there.

Imports: everything below in `tidings.spark`, rich, pydantic.
"""
