"""The server of a real content-driven network: keeps the objects, paints every update, sends each message to the gateways it meets.

Gateways connect over TCP and say which zone they serve and what they have. One that is new gets a snapshot of the objects; one that
comes back gets the messages that it missed, or a snapshot if the log of the last LOG events does not reach so far back. An event
has one sequence number, given under the lock under which it is painted and sent, so a gateway sees them in order.

Deviation from the paper: the server sends to the gateways themselves, where the simulated network (`routing`) forwards from zone to
zone. The messages are the same.
"""

from __future__ import annotations

import socket
import threading
from collections import deque

import numpy as np
from numpy.typing import NDArray

from experiments.network.wire import HELLO, MESSAGES, SNAPSHOT, receive_frame, send_frame
from tidings.boards.paint.paint import PaintDense, paint_each
from tidings.boards.paint.tiles import WIDTH, Messages
from tidings.index.points.objects import ObjectIndex

LOG = 1000


class Origin:
    def __init__(self, k: int, log: int = LOG) -> None:
        self.objects = ObjectIndex()
        self.sequence = 0
        self._painter = PaintDense(self.objects, k)
        self._log: deque[tuple[int, Messages]] = deque(maxlen=log)
        self._gateways: dict[socket.socket, NDArray[np.float64]] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def publish(self, number: int, x: float, y: float) -> int:
        """Move an object (y = inf deletes it); the sequence number of the event."""
        with self._lock:
            messages = paint_each(self.objects, [self._painter], number, x, y)[0]
            self.sequence += 1
            self._log.append((self.sequence, messages))
            for gateway, zone in list(self._gateways.items()):
                met = messages[meets(messages, zone)]
                if len(met):
                    self._send(gateway, MESSAGES, met)
            return self.sequence

    def mark(self) -> int:
        """Let every gateway know that it has all up to the current sequence number."""
        with self._lock:
            for gateway in list(self._gateways):
                self._send(gateway, MESSAGES, np.empty((0, WIDTH)))
            return self.sequence

    @property
    def connected(self) -> int:
        return len(self._gateways)

    def disconnect(self) -> None:
        """Break every connection; gateways that live will come back."""
        with self._lock:
            for gateway in self._gateways:
                gateway.close()
            self._gateways.clear()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.disconnect()

    def _send(self, gateway: socket.socket, kind: int, table: NDArray[np.float64]) -> None:
        try:
            send_frame(gateway, kind, self.sequence, table)
        except OSError:  # it is gone and will ask again
            self._gateways.pop(gateway, None)
            gateway.close()

    def _accept(self) -> None:
        while True:
            try:
                gateway, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._greet, args=(gateway,), daemon=True).start()

    def _greet(self, gateway: socket.socket) -> None:
        frame = receive_frame(gateway)
        if frame is None or frame[0] != HELLO:
            gateway.close()
            return
        _, known, zone = frame
        with self._lock:
            self._gateways[gateway] = zone
            reaches = bool(self._log) and self._log[0][0] <= known + 1
            if known > 0 and (known == self.sequence or reaches):
                missed = [messages[meets(messages, zone)] for at, messages in self._log if at > known]
                self._send(gateway, MESSAGES, np.concatenate([np.empty((0, WIDTH)), *missed]))
            else:
                a = self.objects.arrays
                numbers = np.flatnonzero(a.block_of >= 0)
                self._send(gateway, SNAPSHOT, np.column_stack([numbers, a.x[numbers], a.y[numbers]]))


def meets(messages: Messages, zone: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which messages' rectangles share a point with a zone."""
    met: NDArray[np.bool_] = ((messages[:, :2] <= zone[1]) & (messages[:, 2:4] >= zone[0])).all(1)
    return met
