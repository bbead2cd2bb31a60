"""The service: a folder of topics over HTTP, with delivery that loses nothing. What `tidings serve` runs.

Read `hosting` (topics and the threads that work for them), `hearing` (notifications as streams and pages), `delivery` (sinks),
`access` (who may do what), `app` (the HTTP routes, one noun a file), `run` (processes). May import `durable`, `topic` and what is
below them; nothing below knows it.
"""
