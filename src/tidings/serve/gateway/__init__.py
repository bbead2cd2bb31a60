"""Gateways: the content-driven network of range-topk on Kafka. A painter says in rectangles what changed, gateways tell the
watchers.

Kafka topics of a topic `flats`, of which all but the first three have a partition a zone:

| Kafka topic       | kept      | a record is                                                                                  |
|-------------------|-----------|----------------------------------------------------------------------------------------------|
| `flats.plan`      | compacted | the schema, the families and how their planes are cut into zones                              |
| `flats.objects`   | compacted | an object, by key: its values that families ask for; in the header the sequence               |
| `flats.sketch`    | compacted | where a zone's watchers of a family are: a cover by rectangles                                |
| `flats.messages`  | for a day | what one sequence tells one zone: an Arrow batch of `boards.messages.record`                  |
| `flats.watchers`  | compacted | a watcher of the zone, by id: its range, its k, from which sequence on, where it is called     |
| `flats.notes`     | for a day | a notification of any other subscription, which goes by hash of the subscription's id          |

Read in this order: `layout` (these topics, and the plan), `records` (what stands in them), `painter` (writes a change in one Kafka
transaction), `painting` (the service's writer as its source), `replica` (objects as of any sequence), `zone` (watchers of one
zone), `consuming` (the gateway's thread: which zones are its own, loading and replaying them, how far it is), `hearer`, `gateway`
(the rest), `handing` (who serves what), `app` (HTTP), `run` (the process).

Every change has a sequence. A zone's state at a sequence follows from its watchers and the objects at that sequence, and everything
after it from messages: so whoever takes a zone over goes back to a sequence that was committed, and tells again what was told
since, with the same ids and the same numbers. May import `delivery`, `hearing` and what is below them.
"""
