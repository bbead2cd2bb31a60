"""Painting: one change of an object as few messages, each a rectangle of watchers and what to tell them.

A watcher of [l, r] is the point (l, r) of a plane; the watchers that have an object in their top k fill a staircase in it. Who is
told what is then a matter of tiling: nobody need know the watchers one by one, nor keep their lists. That is for senders: a
network, a message queue whose partitions are zones of the plane. Where all lists are kept in one place and all are told by name,
`boards.ranges` does it (its header has the figures).

| file          | what it says                                                                                |
|---------------|---------------------------------------------------------------------------------------------|
| `tiles`       | the geometry: staircases, what an exposed object gains, messages                            |
| `paint`       | `PaintDense`, which knows the objects alone, and updates one by one                         |
| `sparse`      | `PaintSparse`'s sweep, which knows the watchers too and sends nothing that nobody hears     |
| `line`        | the objects before and after a batch in order of x, for walks                               |
| `batch`       | Paint-Batch: the net of many updates                                                        |
| `zones`       | the plane cut into zones: which of them a rectangle meets, which a watcher belongs to       |
| `watch_lists` | the watcher's side: lists kept by messages alone                                            |

Paper: range-topk, sections II to IV. May import `index.points` alone.
"""
