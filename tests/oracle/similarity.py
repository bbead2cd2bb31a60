"""Which subscriptions are similar enough to a message, by scoring all of them: the judge of `SimilarityIndex`."""

from __future__ import annotations

import math

from tidings.model.filter.clause import Box, touches

Subscription = tuple[Box, frozenset[int], float, float]
"""Box, words, alpha, theta."""


def score(box: Box, words: frozenset[int], alpha: float, message: Box, message_words: frozenset[int], idf: list[float]) -> float:
    """The similarity, summed by ascending word code."""
    shared = weight = 0.0
    for word in sorted(words):
        weight += idf[word]
        if word in message_words:
            shared += idf[word]
    textual = shared / weight if weight > 0.0 else 1.0
    return alpha * covered(box, message) + (1.0 - alpha) * textual


def covered(box: Box, message: Box) -> float:
    """The share of the box that the message covers; all or nothing for a point message and for a box without a finite area."""
    if not touches(box, message):
        return 0.0
    area = (box[2] - box[0]) * (box[3] - box[1])
    if message[:2] == message[2:] or not 0.0 < area < math.inf:
        return 1.0
    width = min(box[2], message[2]) - max(box[0], message[0])
    height = min(box[3], message[3]) - max(box[1], message[1])
    return width * height / area


def similar(
    subscriptions: list[Subscription], messages: list[tuple[Box, frozenset[int]]], idf: list[float]
) -> list[tuple[int, int, float]]:
    """(message, subscription, score) of every score that reaches its subscription's theta."""
    matches = []
    for row, (message, message_words) in enumerate(messages):
        for number, (box, words, alpha, theta) in enumerate(subscriptions):
            value = score(box, words, alpha, message, message_words, idf)
            if value >= theta:
                matches.append((row, number, value))
    return matches
