"""Ranking semantics on the R^t trees: which subscriptions are similar enough to a message, and how similar? [rttree, section 6]

A packed R-tree (`body`) of subscriptions that each have a box, words, alpha and theta; what "similar" means, in which order its
sums are made, and the bounds are in `rank.similarity`. Answers are exactly those of the definition. Immutable: built for a
segment, kept as plain arrays. An entry is a subscription's place in Hilbert order; `number` leads back.

| array         | shape, dtype       | meaning                                                                                 |
|---------------|--------------------|-----------------------------------------------------------------------------------------|
| `number`      | entry, int32       | the subscription's row as it was given                                                   |
| `alpha`, `theta`, `weight` | entry, float64 | `weight` is the sum of its words' idf                                            |
| `near`, `apart` | entry, int32     | lengths of PRE and PRE': the words one of which a match needs if it touches, if it does not |
| `word_start`  | entry + 1, int64   |                                                                                         |
| `word`        | -, int32           | ascending codes: the order in which weights are summed                                   |
| `token`       | -, int32           | the same words, heaviest first: the order of prefixes and of R^t++'s levels               |
| `share_from`  | -, float64         | the share of weight of token[at] and the entry's tokens after it (equation 7)            |
| `least_*`, `most_alpha` | node, float64 | the least area, weight, theta and alpha below it, and the greatest alpha (R^t)       |
| `late_near`  | node, bool         | an entry below may match, touching, without a token of this node or above (R^t+: of any) |
| `late_apart` | node, bool         | an entry below may match without a token and without touching (R^t+)                    |
| `always`      | -, int32           | entries that may match any message (theta <= 0, no words): scored each time (R^t++)      |
| `apart_start` | word + 1, int64    | the root's lists: the entries whose PRE' has the word begin here in `apart_entry` (R^t++) |
| `apart_entry` | -, int32           | those entries, ascending for each word                                                  |

| policy | at a node                                                       | then                                              |
|--------|-----------------------------------------------------------------|---------------------------------------------------|
| R^t    | all tokens; prune by `node_bound` (equation 4)                   | score the entries of the leaves that remain        |
| R^t+   | PRE and PRE' of all below; prune a node that shares none         | the same                                          |
| R^t++  | the i-th token of PRE behind PRE' at level i, in inverted lists  | score an entry if its *first* shared token is met  |

In R^t++ the tokens of PRE', which may match wherever the message is, stand in lists at the root, where no box is asked; those of
PRE that follow are of use only to a message that touches the entry, so the walk below goes by boxes. An entry is scored once, at
the first of its tokens that the message has: those before it stood at the root or in nodes above. The walk goes on below a node
only while some entry there may still be met (`late_near`). theta <= alpha means that a message may match by place alone: such
entries (`near` = FREE) are met in the leaves that the message touches.

Deviations: the paper puts the first token at level 1 and searches all nodes where PRE' may suffice; at the root the same lists
are read once. As in `tree` a leaf is read by its entries, and a node in which a long message touches few leaves by those. The
paper carries a candidate's sum of weights down to its leaf; a candidate's words are at hand, so it is scored from
them when the walk is over, and no sums are kept.
For theta <= alpha it reads all lists of the root; here the boxes lead to the entries that the message touches.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tidings.index.packed.groups import named, part_of
from tidings.index.packed.packing import as_events
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.rttree.body import Body, check_body, hilbert_order, pack
from tidings.index.rttree.filtering import FIRST_ROOM, MESSAGES, POSTINGS, VERIFIED, VISITED
from tidings.index.rttree.policy import POLICIES, RT, RT_PLUS, RT_PLUS_PLUS, Entries, posted_tokens, take_rows
from tidings.index.rttree.representative_tokens import ordered
from tidings.index.rttree.scratch import Scratches
from tidings.index.rttree.similarity_walk import Similar, SimilarTree, bound_nodes, match_similar, prefixes
from tidings.index.rttree.tokens import Tokens, check_tokens, empty_tokens
from tidings.model.columns.arrays import EventColumns
from tidings.rank.similarity import FREE, shares_from, weights_of


class SimilarityIndex:
    """Subscriptions by similarity; `build` makes it, `match_batch` asks it."""

    def __init__(self, policy: int, body: Body, tokens: Tokens, apart_tokens: Tokens, similar: Similar) -> None:
        self.policy, self.body, self.tokens, self.apart_tokens, self.similar = policy, body, tokens, apart_tokens, similar
        self._stats = np.zeros(4, np.int64)
        self._scratches = Scratches()

    @classmethod
    def build(
        cls, box: Float64, word_start: Int64, word: Int32, alpha: Float64, theta: Float64, idf: Float64, policy: str = "R^t++"
    ) -> Self:
        """Subscription i has word[word_start[i]:word_start[i + 1]], ascending; every code is below len(idf). alpha is in [0, 1]."""
        order = hilbert_order(box)
        body = pack(np.ascontiguousarray(box[order]))
        given = Entries(*(np.zeros(0, np.int32),) * 2, word_start[:-1], np.diff(word_start).astype(np.int32), word)
        start, ascending = take_rows(given, order)
        similar = _similar(body, order.astype(np.int32), alpha[order], theta[order], start, ascending, idf, POLICIES[policy])
        return cls(POLICIES[policy], body, *_tables(body, similar, POLICIES[policy]), similar)

    def __len__(self) -> int:
        return len(self.similar.number)

    def match_batch(self, events: EventColumns) -> tuple[Int32, Int32, Float64]:
        """(event row, subscription, score) of every score that reaches its subscription's theta."""
        none = np.empty(0, np.int32)
        parts = [(none, none, np.empty(0))]
        tree = SimilarTree(self.policy, self.body, self.tokens, self.apart_tokens, self.similar, self._stats)
        asked = as_events(events)
        done, room = 0, max(FIRST_ROOM, 64 * len(events))
        with self._scratches.borrow(self.body, len(self.similar.idf), len(events)) as scratch:
            while done < len(events):
                out = (np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room))
                done, found = match_similar(tree, asked, done, scratch, *out)
                parts.append((out[0][:found], out[1][:found], out[2][:found]))
                room *= 2
        event, number, score = zip(*parts, strict=True)
        return np.concatenate(event), np.concatenate(number), np.concatenate(score)

    def check(self) -> None:
        """The body's invariants, prefixes and bounds against their definitions, tokens against those posted afresh."""
        check_body(self.body)
        s, entries = self.similar, len(self)
        assert sorted(s.number.tolist()) == list(range(entries))
        ascending = np.concatenate([np.sort(row) for row in np.split(s.token, s.word_start[1:-1])]) if entries else s.token
        assert (s.word == ascending).all()
        assert (s.weight == weights_of(s.word_start, s.word, s.idf)).all()
        assert ((s.apart == FREE) <= (s.near == FREE)).all()
        assert (s.apart <= np.where(s.near == FREE, np.diff(s.word_start), s.near)).all()
        again = _similar(self.body, s.number, s.alpha, s.theta, s.word_start, s.word, s.idf, self.policy)
        assert all(np.array_equal(getattr(s, field), getattr(again, field)) for field in Similar._fields)
        for one, other in zip((self.tokens, self.apart_tokens), _tables(self.body, s, self.policy), strict=True):
            check_tokens(one, other)

    @property
    def stats(self) -> dict[str, int]:
        """Counters since the index was made: messages, nodes whose tokens were looked at, postings read, entries scored."""
        counters = {"messages": MESSAGES, "visited": VISITED, "postings": POSTINGS, "verified": VERIFIED}
        return {name: int(self._stats[at]) for name, at in counters.items()}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything there is, for a segment; `from_arrays` takes it back, mapped from files if the caller likes."""
        tables = {**named("tokens.", self.tokens), **named("apart.", self.apart_tokens)}
        policy = np.array([self.policy], np.int64)
        return {**named("body.", self.body), **tables, **named("similar.", self.similar), "policy": policy}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        tokens, apart = part_of(Tokens, arrays, "tokens."), part_of(Tokens, arrays, "apart.")
        return cls(int(arrays["policy"][0]), part_of(Body, arrays, "body."), tokens, apart, part_of(Similar, arrays, "similar."))


def _similar(
    body: Body, number: Int32, alpha: Float64, theta: Float64, start: Int64, word: Int32, idf: Float64, policy: int
) -> Similar:
    """The columns of entries that stand in packed order, and the nodes' bounds over them."""
    heaviest_first = np.empty(len(idf), np.int64)
    heaviest_first[np.argsort(-idf, kind="stable")] = np.arange(len(idf))
    token = ordered(start, word, heaviest_first[word])
    share, nodes = shares_from(start, token, idf), len(body.degree)
    near, apart = prefixes(alpha, theta, start, share)
    apart_start, apart_entry = (
        _lists(start, token, apart, len(idf)) if policy == RT_PLUS_PLUS else _lists(start, token, near[:0], 0)
    )
    similar = Similar(
        number=number,
        alpha=alpha,
        theta=theta,
        weight=weights_of(start, word, idf),
        near=near,
        apart=apart,
        word_start=start,
        word=word,
        token=token,
        share_from=share,
        least_area=np.full(nodes, np.inf),
        least_weight=np.full(nodes, np.inf),
        least_theta=np.full(nodes, np.inf),
        least_alpha=np.full(nodes, np.inf),
        most_alpha=np.zeros(nodes),
        late_near=np.zeros(nodes, np.bool_),
        late_apart=np.zeros(nodes, np.bool_),
        always=np.flatnonzero(apart == FREE).astype(np.int32),
        apart_start=apart_start,
        apart_entry=apart_entry,
        idf=idf,
    )
    bound_nodes(policy, body, similar)
    return similar


def _lists(start: Int64, token: Int32, length: Int32, vocabulary: int) -> tuple[Int64, Int32]:
    """The inverted lists of the first `length` tokens of each entry: those of a token are entry[start[token]:start[token + 1]]."""
    count = np.maximum(length, 0)
    entry = np.repeat(np.arange(len(count), dtype=np.int32), count)
    prefix = token[np.repeat(start[: len(count)] - (np.cumsum(count) - count), count) + np.arange(len(entry))]
    by_token = np.argsort(prefix, kind="stable")
    ends = np.cumsum(np.bincount(prefix, minlength=vocabulary))
    return np.concatenate([[0], ends]).astype(np.int64), entry[by_token]


def _tables(body: Body, similar: Similar, policy: int) -> tuple[Tokens, Tokens]:
    """The token tables of the policy: all tokens; PRE and PRE'; the tokens of PRE behind PRE' by level."""
    none = np.zeros(0, np.int32)
    near = np.where(similar.near == FREE, 0, similar.near).astype(np.int32)
    apart = np.where(similar.apart == FREE, 0, similar.apart).astype(np.int32)

    def posted(count: Int32, kind: int, skipped: Int32 | int = 0) -> Tokens:
        return posted_tokens(body, Entries(none, none, similar.word_start[:-1] + skipped, count, similar.token), kind)

    if policy == RT:
        return posted(np.diff(similar.word_start).astype(np.int32), RT), empty_tokens(0, 0, False)
    if policy == RT_PLUS:
        return posted(near, RT), posted(apart, RT)
    return posted(np.maximum(near - apart, 0), RT_PLUS_PLUS, apart), empty_tokens(0, 0, False)
