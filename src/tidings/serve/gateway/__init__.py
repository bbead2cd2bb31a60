"""Gateways: the content-driven network of range-topk on Kafka. A painter says in rectangles what changed, gateways tell the
watchers.

What stands in Kafka is `tidings.kafka`'s. Read in this order: `painting` (the service's writer as a painter's source), `zone`
(watchers of one zone), `consuming` (the gateway's thread: which zones are its own, loading and replaying them, how far it is),
`hearer`, `gateway` (the rest), `handing` (who serves what), `app` (HTTP), `run` (the process).

Every change has a sequence. A zone's state at a sequence follows from its watchers and the objects at that sequence, and everything
after it from messages: so whoever takes a zone over goes back to a sequence that was committed, and tells again what was told
since, with the same ids and the same numbers. May import `delivery`, `hearing` and what is below them.
"""
