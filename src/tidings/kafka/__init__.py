"""A painted topic in Kafka: what painters write and gateways read. The service paints for one machine, Spark for more; the records
are the same.

Kafka topics of a topic `flats`, of which all but the first three have a partition a zone:

| Kafka topic       | kept      | a record is                                                                                  |
|-------------------|-----------|----------------------------------------------------------------------------------------------|
| `flats.plan`      | compacted | the schema, the families and how their planes are cut into zones                              |
| `flats.objects`   | compacted | an object, by key: its values that families ask for; in the header the sequence               |
| `flats.sketch`    | compacted | where a zone's watchers of a family are: a cover by rectangles                                |
| `flats.messages`  | for a day | what one sequence tells one zone: an Arrow batch of `boards.messages.record`                  |
| `flats.watchers`  | compacted | a watcher of the zone, by id: its range, its k, from which sequence on, where it is called     |
| `flats.notes`     | for a day | a notification of any other subscription, which goes by hash of the subscription's id          |

Read in this order: `layout` (these topics, and the plan), `records` (what stands in them), `replica` (objects as of any sequence),
`sketch` (where watchers are), `writer` (writes a change in one Kafka transaction), `painter` (the writer whose changes are painted
in its own process). May import `boards` and `model`; it needs the extra `kafka`, of which `server` has all.
"""
