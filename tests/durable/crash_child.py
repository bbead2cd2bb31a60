"""The program that `test_crash` kills: acts on a durable topic as its script says, and acknowledges every act when it has returned.

python -m tests.durable.crash_child FOLDER SCRIPT [LIMIT MORE]   # a script's line: a JSON list, the act's name and its arguments

With LIMIT (a name of `resource`) it may, once the topic is open, have MORE of that than it has, and ends at the first refusal.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import tidings as td
from tests.hostile import hostile
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


def limit(name: str, more: int) -> None:
    held = {
        "RLIMIT_AS": 4096 * int(Path("/proc/self/statm").read_text().split()[0]),
        "RLIMIT_NOFILE": len(os.listdir("/proc/self/fd")),
    }
    resource.setrlimit(getattr(resource, name), (held[name] + more, resource.getrlimit(getattr(resource, name))[1]))


def main(folder: str, script: str, *limited: str) -> None:
    merging.FLUSH_AT, merging.MERGE_WIDTH, housekeeping.QUIET = 6, 3, 0.01
    topic = td.open(folder, "t", SCHEMA)
    with open(script) as lines:
        acts = [json.loads(line) for line in lines]
    if not len(topic):
        for id, ranking in hostile("price").items():
            topic.subscribe(id, **ranking, time=0)
    if limited:
        limit(limited[0], int(limited[1]))
    for number, (name, *arguments) in enumerate(acts):
        act(topic, name, *arguments)
        print(number, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
