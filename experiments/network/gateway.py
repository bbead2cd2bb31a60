"""A gateway as a process: serves the watchers of its zone, whose lists it keeps from the server's messages alone.

    python -m experiments.network.gateway PORT WATCHERS.npz

WATCHERS.npz has `range` (m x 2), `k`, and `zone` (2 x 2). The process prints the port at which it answers every connection with one
line of JSON: the sequence number up to which it has heard, and its lists as [[object, y], ...]. When its connection to the server
breaks it connects again, saying what it has; started anew it has nothing and gets a snapshot. It ends when it is killed.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

import numpy as np
from numpy.typing import NDArray

from experiments.network.wire import HELLO, MESSAGES, SNAPSHOT, receive_frame, send_frame
from tidings.boards.paint.watch_lists import WatchLists
from tidings.index.points.objects import ObjectIndex
from tidings.index.points.watchers import WatchIndex

RETRY_SECONDS = 0.1


class Gateway:
    def __init__(self, ranges: NDArray[np.float64], k: int, zone: NDArray[np.float64]) -> None:
        self.ranges, self.k, self.zone = ranges, k, zone
        self.sequence = 0
        self._watchers = WatchIndex.build(np.arange(len(ranges), dtype=np.int32), ranges)
        self._lists = WatchLists(k, max(len(ranges), 1))
        self._tie = np.arange(64.0)
        self._lock = threading.Lock()

    def hear(self, kind: int, sequence: int, table: NDArray[np.float64]) -> None:
        with self._lock:
            if kind == SNAPSHOT:
                self._restart(table)
            elif len(table):
                self._know(int(max(table[:, 4].max(), table[:, 7].max())))
                self._lists.apply(np.ascontiguousarray(table), self._watchers, self._tie)
            self.sequence = sequence

    def answer(self) -> bytes:
        with self._lock:
            lists = [self._lists.top(watcher) for watcher in range(len(self.ranges))]
            return json.dumps({"sequence": self.sequence, "lists": lists}).encode() + b"\n"

    def _restart(self, table: NDArray[np.float64]) -> None:
        """First lists from a snapshot of the objects, which are then forgotten."""
        objects = ObjectIndex()
        objects.insert_many(table[:, 0].astype(np.int64), table[:, 1].copy(), table[:, 2].copy())
        self._know(int(table[:, 0].max(initial=0)))
        for watcher, (l, r) in enumerate(self.ranges):
            best = objects.best(l, r, self.k)
            self._lists.reset(watcher, l, r, best, [float(objects.arrays.y[number]) for number in best])

    def _know(self, number: int) -> None:
        if number >= len(self._tie):
            self._tie = np.arange(2.0 * number)

    def follow(self, port: int) -> None:
        """Connect to the server and hear it until it is gone."""
        with socket.create_connection(("127.0.0.1", port)) as server:
            send_frame(server, HELLO, self.sequence, self.zone)
            while (frame := receive_frame(server)) is not None:
                assert frame[0] in (SNAPSHOT, MESSAGES)
                self.hear(*frame)


def answer_all(gateway: Gateway, listener: socket.socket) -> None:
    while True:
        asker, _ = listener.accept()
        with asker:
            asker.sendall(gateway.answer())


def main(port: int, path: str) -> None:
    with np.load(path) as watchers:
        gateway = Gateway(watchers["range"], int(watchers["k"]), watchers["zone"])
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=answer_all, args=(gateway, listener), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    while True:
        try:
            gateway.follow(port)
        except ConnectionError:
            time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
