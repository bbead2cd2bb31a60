"""How similar is a message to a subscription of a box and words, and what can the similarity not exceed? [rttree, section 6]

    similarity = alpha * spatial + (1 - alpha) * textual

*Spatial* is the share of the subscription's box that the message's box covers. For a point message, and for a subscription box
without a finite area above 0 (a point, a line, no bound at all), it is 1 if the two touch and else 0. Boxes that touch in an edge
share no area. *Textual* is the share of the subscription's words that the message has, each word weighing its idf; a
subscription without words asks for none, so it is 1. A word that is in no subscription weighs nothing.

The order of arithmetic is part of the definition, so that scores can be compared with ==: weights are summed by ascending word
code, an area is width times height, and the score is exactly `alpha * spatial + (1 - alpha) * textual`.

Bounds are used only to leave things out, each time with SLACK, far above the rounding of scores between 0 and 1; what remains is
scored exactly. So rounding never costs an answer.

| function        | equation                                                                                           |
|-----------------|----------------------------------------------------------------------------------------------------|
| `node_bound`    | 4: what nothing below an R^t node exceeds                                                           |
| `least_textual` | 5 (spatial part at most 1) and 6 (spatial part 0): the textual similarity that a match cannot lack   |
| `prefix_length` | PRE and PRE': the words of which a match must have one                                               |
| `shares_from`   | 7: the share of weight of a word and all that follow it                                              |

Deviations: the paper prunes a node whose bound is <= theta, and lets the words behind a prefix weigh as much as the bound; both
lose answers that meet theta exactly, so here both are <. Equation 7 leaves the word itself out and adds it where it is used; here
it is in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel

SLACK = 1e-9
FREE, NEVER = -1, 0
"""Prefix lengths of a subscription that may match without any word, and of one that cannot match."""


def idf(df: NDArray[np.int64], subscriptions: int) -> NDArray[np.float64]:
    """The weight of each word: log(1 + N / df), above 0 for every word; one that no subscription has counts as if one had it."""
    weight: NDArray[np.float64] = np.log(1.0 + subscriptions / np.maximum(df, 1))
    return weight


@kernel
def spatial_part(box: NDArray[np.float64], row: int, message: NDArray[np.float64]) -> float:
    """The spatial similarity of box[row]; rows are not cut out, for that costs more than the arithmetic."""
    xmin, ymin, xmax, ymax = box[row, 0], box[row, 1], box[row, 2], box[row, 3]
    if not (xmin <= message[2] and message[0] <= xmax and ymin <= message[3] and message[1] <= ymax):
        return 0.0
    area = (xmax - xmin) * (ymax - ymin)
    if (message[0] == message[2] and message[1] == message[3]) or not 0.0 < area < np.inf:
        return 1.0
    part: float = (min(xmax, message[2]) - max(xmin, message[0])) * (min(ymax, message[3]) - max(ymin, message[1])) / area
    return part


@kernel
def shared_weight(
    word: NDArray[np.int32], first: int, last: int, idf: NDArray[np.float64], stamp: NDArray[np.int32], number: int
) -> float:
    """The weight of those words in word[first:last] that carry the stamp."""
    shared = 0.0
    for at in range(first, last):
        if stamp[word[at]] == number:
            shared += idf[word[at]]
    return shared


@kernel
def textual_part(shared: float, weight: float) -> float:
    """The share of the weight of a subscription's words; all of it when there is none to have."""
    return shared / weight if weight > 0.0 else 1.0


@kernel
def similarity(alpha: float, spatial: float, textual: float) -> float:
    """[rttree, Eq. 3]"""
    return alpha * spatial + (1.0 - alpha) * textual


@kernel
def node_bound(least_alpha: float, most_alpha: float, spatial: float, textual: float) -> float:
    """The most similar that anything below a node can be, given bounds of its parts; linear in alpha, so an end is the worst.
    [rttree, Eq. 4]"""
    return max(similarity(least_alpha, spatial, textual), similarity(most_alpha, spatial, textual))


@kernel
def least_textual(alpha: float, theta: float, spatial: float) -> float:
    """The textual part that a match must have if its spatial part is at most `spatial`. [rttree, Eq. 5 and 6]"""
    if alpha < 1.0:
        return (theta - alpha * spatial) / (1.0 - alpha)
    return -np.inf if theta <= alpha * spatial + SLACK else np.inf


@kernel
def prefix_length(share_from: NDArray[np.float64], least: float) -> int:
    """How many of the first words a match must share at least one of, if its textual part is `least` or more.

    `share_from[i]` is the share of the words from i on; without words the textual part is 1. FREE: it need not share any;
    NEVER: it cannot have so much. [rttree, section 6.2: PRE, PRE']
    """
    if least > 1.0 + SLACK:
        return NEVER
    if least <= SLACK or len(share_from) == 0:
        return FREE
    length = len(share_from)
    while length > 1 and share_from[length - 1] < least - SLACK:
        length -= 1
    return length


@kernel
def shares_from(start: NDArray[np.int64], word: NDArray[np.int32], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each word of each subscription, the share of the weight of that word and those after it. [rttree, Eq. 7]"""
    share = np.zeros(len(word))
    for i in range(len(start) - 1):
        rest = 0.0
        for at in range(start[i + 1] - 1, start[i] - 1, -1):
            rest += weight[word[at]]
            share[at] = rest
        for at in range(start[i], start[i + 1]):
            share[at] = share[at] / rest if rest > 0.0 else 1.0
    return share


@kernel
def weights_of(start: NDArray[np.int64], word: NDArray[np.int32], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of each subscription's words, summed in the order given: ascending codes."""
    total = np.zeros(len(start) - 1)
    for i in range(len(total)):
        for at in range(start[i], start[i + 1]):
            total[i] += weight[word[at]]
    return total
