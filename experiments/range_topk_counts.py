"""Counting for range-topk: deliveries, bytes, and a figure beside the printed one.

Bytes are counted with numbers of 4 bytes: a message of the network has 6 (the rectangle, x, y) and 2 more when it also carries the
object that it replaces; a unicast message has 4. With these the paper's own figures agree: Table I x 2.5 x 16 = 316,170 bytes.
"""

from __future__ import annotations

import numpy as np

from tidings._jit import kernel
from tidings.boards.paint.tiles import MOVED
from tidings.index.points.tree_questions import report as watchers_in


@kernel
def heard_by(watchers, messages):
    """Deliveries of each message."""
    heard = np.empty(len(messages), np.int64)
    box = np.empty((2, 2))
    for i in range(len(messages)):
        box[0, 0], box[0, 1], box[1, 0], box[1, 1] = messages[i, 0], messages[i, 1], messages[i, 2], messages[i, 3]
        heard[i] = len(watchers_in(watchers, box))
    return heard


def message_bytes(messages):
    return 4 * (6 + 2 * (messages[:, MOVED] >= 0))


def step(text):
    print(f"  {text}", flush=True)


def beside(ours, printed):
    return f"{ours:.4g} ({printed:g})"
