"""Boards: the subscriber's k over changing objects. Who has which of a table's current objects in his list, and what changed?

Read in this order:

| file            | what it says                                                                                            |
|-----------------|---------------------------------------------------------------------------------------------------------|
| `boards`        | `Boards`: watchers come, go and expire, objects are put and taken away, lists and their changes come out |
| `changes`       | a change, and many of them as columns                                                                   |
| `ranges`        | watchers of ranges of the same attributes, kept together: how a list follows an object                  |
| `watch_columns` | those watchers as columns: whom an object concerns                                                      |
| `lists`         | their lists, in one pool, and the net difference of a batch                                             |
| `plain`         | any other watcher: all its matches, sorted                                                              |
| `key_order`     | numbers for keys, and floats in the order of the keys, by which equal ranks are told apart              |
| `paint/`        | range-topk's painting: a change as few rectangles of watchers, for who sends instead of keeping lists   |
| `messages/`     | a family's changes as messages, and lists that are kept of messages alone                               |

An object is a `number` (of its key), a watcher a `row` of its family, -1 is none of them. Ranks ascend as relevance descends.

May import `model`, `rank` and `index.points`; neither `match` nor `windows`. `topic.publisher` uses `Boards` and `Changes` alone.
"""
