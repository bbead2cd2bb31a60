"""Whole jobs: a TOML file in, running queries and a report out. What `tidings run` and `tidings submit` do.

Read `job_file` (what a job says), then `runner` (makes the topic, starts the queries, watches them). `progress` is what a query
tells of itself, `report` the page at the end. `submit` packs this environment for a cluster that lacks it, `submitted_job` is
the program that runs there.

Imports: everything below in `tidings.spark`, rich.
"""
