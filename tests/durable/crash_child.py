"""The program that `test_crash` kills: acts on a durable topic as its script says, and acknowledges every act when it has returned.

python crash_child.py FOLDER SCRIPT     # a line of the script is a JSON list: the act's name and its arguments
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa

import tidings as td
from tidings.match.store import housekeeping, merging

SCHEMA = td.Schema({"price": td.Number(0, 8), "brand": td.Category(), "about": td.Words()})


def act(topic: td.Topic, name: str, *arguments: Any) -> None:
    if name == "subscribe":
        id, filter, ranking, time = arguments
        topic.subscribe(id, filter, time=time, **ranking)
    elif name == "subscribe_many":
        columns, time = arguments
        topic.subscribe_many(pa.table(columns), time=time)
    elif name == "update":
        id, changes, time = arguments
        topic.update(id, time=time, **changes)
    elif name == "publish_batch":
        events, time = arguments
        topic.publish_batch(events, time=time)
    elif name == "publish":
        event, time = arguments
        topic.publish(event, time=time)
    else:
        assert name in ("unsubscribe", "advance", "acknowledge", "flush", "merge")
        getattr(topic, name)(*arguments)


def main(folder: str, script: str) -> None:
    merging.FLUSH_AT, merging.MERGE_WIDTH, housekeeping.QUIET = 6, 3, 0.01
    topic = td.open(folder, "t", SCHEMA)
    with open(script) as lines:
        acts = [json.loads(line) for line in lines]
    for number, (name, *arguments) in enumerate(acts):
        act(topic, name, *arguments)
        print(number, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
