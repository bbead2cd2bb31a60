"""The program that `test_crash` kills: acts on a durable topic as it is told, and acknowledges every act when it has returned.

    python -m tests.durable.crash_child      # one JSON object a line in, one out

A server of processes: it loads everything once (`warm`), and for every line forks a child that opens the folder, acts, and is
killed, so that a kill costs what the child did and not what starting Python costs. No topic is open when it forks. A line has
`folder`, `acts` (each a list, the act's name and its arguments), `wanted` (acknowledgements after which to kill), `most` (seconds
after which to kill anyhow), `then` (seconds to wait before killing) and `limit`: None, or a name of `resource` and how much more of
that than it has the child may have once the topic is open; it then ends at the first refusal. The answer has `done`, `status` and
`complaint`.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import tempfile
import time as wall_clock
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa

import tidings as td
from tests.hostile import hostile
from tidings.durable import event_batches, waiting
from tidings.match.store import housekeeping, merging

event_batches.FEWEST = waiting.FEWEST = 2
"""So that single ones are rows here and others columns."""
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


def allow(name: str, more: int) -> None:
    held = {
        "RLIMIT_AS": 4096 * int(Path("/proc/self/statm").read_text().split()[0]),
        "RLIMIT_NOFILE": len(os.listdir("/proc/self/fd")),
    }
    resource.setrlimit(getattr(resource, name), (held[name] + more, resource.getrlimit(getattr(resource, name))[1]))


def play(folder: str, acts: list[list[Any]], limit: list[Any] | None, acknowledge: int) -> td.Topic:
    """Do all of it, writing a line to the descriptor `acknowledge` after each act."""
    merging.FLUSH_AT, merging.MERGE_WIDTH, housekeeping.QUIET = 6, 3, 0.01
    topic = td.open(folder, "t", SCHEMA)
    if not len(topic):
        for id, ranking in hostile("price").items():
            topic.subscribe(id, **ranking, time=0)
    if limit is not None:
        allow(*limit)
    for name, *arguments in acts:
        act(topic, name, *arguments)
        os.write(acknowledge, b".")
    return topic


def killed(folder: str, acts: list[list[Any]], wanted: int, most: float, then: float, limit: list[Any] | None) -> dict[str, Any]:
    """What became of a child that did this until it was killed."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as complaint:
        child = os.fork()
        if not child:
            os.dup2(complaint.fileno(), 2)
            _child(folder, acts, limit, writing)
        os.close(writing)
        done, end = 0, wall_clock.monotonic() + most
        while done < wanted and select.select([reading], [], [], max(end - wall_clock.monotonic(), 0))[0]:
            if not (told := os.read(reading, wanted - done)):
                break
            done += len(told)
        wall_clock.sleep(then)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as rest:
            done += len(rest.read())
        complaint.seek(0)
        return {"done": done, "status": os.waitstatus_to_exitcode(status), "complaint": complaint.read().decode(errors="replace")}


def _child(folder: str, acts: list[list[Any]], limit: list[Any] | None, acknowledge: int) -> None:
    try:
        _topic = play(folder, acts, limit, acknowledge)
        signal.pause()
    except BaseException:  # noqa: BLE001 - a forked child ends here, whatever it was
        traceback.print_exc()
    finally:
        os._exit(1)


def warm(acts: list[list[Any]]) -> None:
    """Load every kernel that these acts need."""
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "wb") as nobody:
        for _ in range(2):
            play(f"{folder}/topic", acts, None, nobody.fileno()).close()


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if list(asked) == ["warm"]:
            warm(asked["warm"])
            print("{}", flush=True)
        else:
            print(json.dumps(killed(**asked)), flush=True)


if __name__ == "__main__":
    main()
