"""A board's changes as messages: what a family of watchers has to hear, said in rectangles, and lists kept of that alone.

Read in this order:

| file        | what it says                                                                                         |
|-------------|------------------------------------------------------------------------------------------------------|
| `family`    | `Family`: the attribute that watchers have ranges of, what they rank by, and the longest list of them |
| `table`     | the Arrow schema of messages, its version, and rows of painting as such a table                       |
| `record`    | the same as records of a queue whose partitions are zones                                            |
| `objects`   | the objects of one family, by key: where they stand, and the first list of whoever begins             |
| `painter`   | `FamilyPainter`: changes of objects in, messages out                                                  |
| `painted`   | `Painted`: what a topic's publisher touched since last asked, said by the painters of its families    |
| `followers` | `Followers`: the receiver's side, many watchers' lists from messages, and what each has to be told     |

May import `boards.paint` and `boards.key_order`, `index.points` and `model`.
"""
