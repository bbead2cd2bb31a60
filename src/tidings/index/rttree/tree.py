"""R^t, R^t+ and R^t++: which subscriptions of a box and words does a message reach?

One R-tree (`body`) with tokens at its nodes (`tokens`); the three trees differ only in which tokens stand where
(`policy`) and so in how they are walked (`filtering`). The first, the representative, token of an entry is chosen by an order of
`representative_tokens`. R^t and R^t+ prune and then verify the entries of the leaves that remain; R^t++ counts an entry's tokens
along the inverted lists and needs no verification.

Clauses may have a box and words and nothing else. A name may be given to several entries: it matches when one of them does, and
that is how words joined by *or* are served (`any_word` decomposes them, as section 2.1 proposes). A message is a point when its
corners are equal, else a range; a box matches if it touches, edges included. An entry without words asks only for its place.

Cost: O(|m| + lists) per visited node; 32 B for an entry's box, about 12 B for its share of the nodes, 30 B for name and words, and
the token table. `head` (int32) leads from a name to its first entry, so names should be about dense.

Deviations, all in the walk of R^t++. An entry's box is tested when the walk meets it first, not when its count is full
(`box_first`): the paper's walk follows the words of entries far from the message down to their leaves. Below level 1 a node is
asked only for those of the message's tokens that an entry counted above it has next, where the paper asks for all: other lists hold
nobody who is still in the race. A leaf is read by its few entries, for the same reason; its lists are kept, for they are part of
the tree and similarity reads them. Where a long message touches only a few leaves below a node of level 1, those leaves are read
instead of as many lists as it has words, and their entries verified (`WORDS_A_LEAF`); with `box_first` off, never. The paper's
text and example disagree whether level 1 is the root or its children; here it is its children, for at the root the box prunes
nothing. [rttree, sections 3-5]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tidings._jit import kernel
from tidings.index.packed.groups import named, part_of
from tidings.index.packed.packing import as_events
from tidings.index.packed.record import Events
from tidings.index.packed.sentinels import NONE
from tidings.index.packed.simd import wide
from tidings.index.packed.types import Float64, Int32, Int64
from tidings.index.rttree.body import (
    LEAST,
    MOST,
    ROOT,
    Body,
    attach,
    check_body,
    detach,
    empty_body,
    hilbert_order,
    pack,
    with_entries,
    with_nodes,
)
from tidings.index.rttree.filtering import FIRST_ROOM, MESSAGES, POSTINGS, VERIFIED, VISITED, Reading, Tree, match_messages
from tidings.index.rttree.policy import (
    ALWAYS,
    POLICIES,
    RT,
    RT_PLUS_PLUS,
    Entries,
    empty_entries,
    move_children,
    post_path,
    posted_tokens,
    take_rows,
    with_words,
)
from tidings.index.rttree.representative_tokens import GRID, ORDERS, Frequencies
from tidings.index.rttree.reshape import displace, drop_node, nearest_children, nearest_sibling, place, take_node, upper_half
from tidings.index.rttree.scratch import Scratches, scratch_for
from tidings.index.rttree.tokens import FULL, KEYS, LONGEST, ROOM_USED, Tokens, check_tokens, with_space
from tidings.model.columns.arrays import ClauseColumns, EventColumns, take_clauses

SINGLE_ROOM = 4096
"""Matches of one message that a call has space for."""
MOST_WORDS = 60_000
"""Words an entry may have; the walk counts them in 16 bits."""


class RtTree:
    """Clauses of a box and words. `policy` is "R^t", "R^t+" or "R^t++", `order` a name in `representative_tokens.ORDERS`, `grid`
    the cells a side that the order "locality" counts in."""

    def __init__(self, policy: str = "R^t++", order: str = "idf", *, box_first: bool = True, grid: int = GRID) -> None:
        self.policy, self.order, self.box_first = POLICIES[policy], order, box_first
        self.frequencies = Frequencies(order == "locality", grid)
        self.body: Body = empty_body()
        self.entries: Entries = empty_entries()
        self.tokens: Tokens = posted_tokens(self.body, self.entries, self.policy)
        self._head = np.full(0, NONE, np.int32)
        self._free: list[int] = []
        self._next = self._words = self._shared = self._most_words = 0
        self._stats = np.zeros(4, np.int64)
        self._scratches = Scratches()

    def __len__(self) -> int:
        return int(self.body.size[self.body.root])

    def insert(self, names: Int32, clauses: ClauseColumns) -> None:
        """Add clauses; into an empty tree they are packed. A name that is there already gains an alternative."""
        start, token = clause_tokens(clauses)
        if not len(names):
            return
        self._most_words = max(self._most_words, int(np.diff(start).max()))
        self.frequencies.add(clauses.box, start, token)
        token = ORDERS[self.order](self.frequencies, clauses.box, start, token)
        if len(self) == 0:
            self._pack(names, clauses.box, start, token)
        else:
            self._add(names, clauses.box, start, token)

    def delete(self, names: Int32) -> None:
        """Remove all entries of the names; a name that is not there is a KeyError, and nothing is removed."""
        if len(names) and (names.max() >= len(self._head) or (self._head[names] < 0).any()):
            raise KeyError(f"names {sorted(set(names.tolist()) - set(self._names()))[:5]} are not in the tree")
        names = np.unique(names)
        gone = entries_of(self.entries, self._head, names)
        self._head[names] = NONE
        self._shared -= len(gone) - len(names)
        start, token = take_rows(self.entries, gone)
        self.frequencies.remove(self.body.entry_box[gone], start, token)
        done = 0
        while done < len(gone):
            done, leaf = remove_entries(self.body, self.tokens, self.entries, self.policy, gone, done)
            if self.body.degree[leaf] < LEAST:
                self._fill_up(leaf)
        self._free += gone.tolist()

    def match_batch(self, events: EventColumns) -> tuple[Int32, Int32]:
        """(event row, name) of every match, each once."""
        return self.match_rows(as_events(events), 0, len(events))

    def match_rows(self, events: Events, first: int, last: int) -> tuple[Int32, Int32]:
        """The same of the events [first, last)."""
        parts: list[tuple[Int32, Int32]] = []
        tree = Tree(self.body, self.tokens, self.entries, self.policy, self.box_first, self.frequencies.df, self._stats)
        room, done = max(FIRST_ROOM, 64 * (last - first)), first
        with self._scratches.borrow(self.body, len(self.frequencies.df), last - first) as scratch:
            while done < last:
                out = np.empty(room, np.int32), np.empty(room, np.int32)
                done, found = match_messages(tree, events, done, last, scratch, *out)
                parts.append((out[0][:found], out[1][:found]))
                room *= 2
        matches = np.concatenate([np.stack(part) for part in parts], axis=1) if parts else np.empty((2, 0), np.int32)
        if self._shared:
            matches = np.unique(matches, axis=1)
        return matches[0], matches[1]

    def reading(self) -> Reading:
        """The tree as it stands, and space of its own to match one message at a time."""
        df, out = self.frequencies.df, (np.empty(SINGLE_ROOM, np.int32), np.empty(SINGLE_ROOM, np.int32))
        parts = (self.body, self.tokens, self.entries, self.policy, int(self.box_first), df, self._stats)
        return Reading(*parts, scratch_for(self.body, len(df)), *out)

    def check(self) -> None:
        """The body's invariants, the names' chains, and that the tokens are those of a tree posted afresh."""
        check_body(self.body)
        live = np.flatnonzero(self.body.leaf >= 0)
        names = self._names()
        assert sorted(entries_of(self.entries, self._head, names)) == live.tolist()
        assert self._shared == len(live) - len(names)
        assert not set(self._free) & set(live.tolist())
        check_tokens(self.tokens, posted_tokens(self.body, self.entries, self.policy))
        start, token = take_rows(self.entries, live)
        fresh = Frequencies(local=False)
        fresh.add(self.body.entry_box[live], start, token)
        assert (self.frequencies.df[: len(fresh.df)] == fresh.df).all()
        assert self.frequencies.df.sum() == fresh.df.sum()

    @property
    def stats(self) -> dict[str, int]:
        """Counters since the tree was made: messages, nodes whose tokens were looked at, postings read, entries verified."""
        counters = {"messages": MESSAGES, "visited": VISITED, "postings": POSTINGS, "verified": VERIFIED}
        return {name: int(self._stats[at]) for name, at in counters.items()}

    @property
    def nbytes(self) -> int:
        return self.body.nbytes + self.tokens.nbytes + self.entries.nbytes + self.frequencies.nbytes + self._head.nbytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything a reader needs, for a segment; `from_arrays` takes it back, mapped from files if the caller likes."""
        kind = np.array([self.policy, list(ORDERS).index(self.order), self.box_first, self._shared], np.int64)
        parts = {**named("body.", self.body), **named("tokens.", self.tokens), **named("entries.", self.entries)}
        return {**parts, "head": self._head, "df": self.frequencies.df, "kind": kind}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """A tree to match with; it is not to be changed."""
        policy, order, box_first, shared = (int(value) for value in arrays["kind"])
        tree = cls.__new__(cls)
        tree.policy, tree.order, tree.box_first, tree._shared = policy, list(ORDERS)[order], bool(box_first), shared
        tree.body, tree.tokens = part_of(Body, arrays, "body."), part_of(Tokens, arrays, "tokens.")
        tree.entries = part_of(Entries, arrays, "entries.")
        tree.frequencies = Frequencies(local=False)
        tree.frequencies.df, tree._head = arrays["df"], arrays["head"]
        tree._free, tree._next, tree._words = [], len(tree.body.leaf), len(tree.entries.token)
        tree._stats, tree._scratches = np.zeros(4, np.int64), Scratches()
        return tree

    def _names(self) -> Int32:
        return np.flatnonzero(self._head >= 0).astype(np.int32)

    def _pack(self, names: Int32, box: Float64, start: Int64, token: Int32) -> None:
        order = hilbert_order(box)
        given = Entries(names, np.full(len(names), NONE, np.int32), start[:-1], np.diff(start).astype(np.int32), token)
        start, token = take_rows(given, order)
        self.entries = Entries(names[order], given.same, start[:-1], np.diff(start).astype(np.int32), token)
        self.body = pack(np.ascontiguousarray(box[order]))
        self._free, self._next, self._words = [], len(names), len(token)
        self._link(np.arange(len(names), dtype=np.int32))
        self.tokens = posted_tokens(self.body, self.entries, self.policy)

    def _add(self, names: Int32, box: Float64, start: Int64, token: Int32) -> None:
        reused = [self._free.pop() for _ in range(min(len(names), len(self._free)))]
        fresh = range(self._next, self._next + len(names) - len(reused))
        self._next = fresh.stop
        self.body = with_entries(self.body, fresh.stop)
        entry = np.array([*reused, *fresh], np.int32)
        self.entries, self._words = with_words(self.entries, self._words, self.body, entry, np.diff(start), token)
        self.body.entry_box[entry] = box
        self.entries.name[entry] = names
        self._link(entry)
        done = 0
        while done < len(entry):
            done, leaf = add_entries(self.body, self.tokens, self.entries, self.policy, entry, done)
            if leaf >= 0:
                self._split(leaf)
            elif done < len(entry):
                words = int(self.entries.word_count[entry[done]])
                self._reserve(words * self.body.levels, words * (2 * int(self.tokens.state[LONGEST]) + 2))

    def _link(self, entry: Int32) -> None:
        """Hang the entries onto their names' chains."""
        names = self.entries.name[entry]
        if names.max() >= len(self._head):
            longer = np.full(max(int(names.max()) + 1, 2 * len(self._head)), NONE, np.int32)
            longer[: len(self._head)] = self._head
            self._head = longer
        self._shared += link_names(self.entries, self._head, entry)

    def _reserve(self, keys: int, room: int) -> None:
        self.tokens = with_space(self.tokens, keys, room if self.policy == RT_PLUS_PLUS else 0)

    def _move(self, giver: int, taker: int, children: Int32) -> None:
        """Hang children from one node to a sibling, with their tokens."""
        body, posted = self.body, giver != self.body.root  # which alone has no token set
        leaf = body.height[giver] == 0
        moved = len(children) if leaf else int(body.size[children].sum())
        if posted:
            words = self._most_words if leaf or self.policy == RT else 1
            postings = words * (moved + int(body.size[taker]))
            self._reserve(min(moved * words, len(self.frequencies.df)), 4 * postings)
        move_children(body, self.tokens, self.entries, self.policy, giver, taker, children, posted)

    def _split(self, node: int) -> None:
        """Cut an overfull node in two, and then its parent if that makes it overfull."""
        while self.body.degree[node] > MOST:
            body = self.body = with_nodes(self.body, 2)
            is_root = node == body.root
            if is_root:
                body.state[ROOT] = take_node(body, int(body.height[node]) + 1)
                attach(body, body.root, node)
            sibling = take_node(body, int(body.height[node]))
            parent = int(body.parent[node])
            if is_root:
                move_children(body, self.tokens, self.entries, self.policy, node, sibling, upper_half(body, node), False)
            else:
                self._move(node, sibling, upper_half(body, node))
            attach(body, parent, sibling)
            body.size[parent] -= body.size[sibling]
            if is_root:
                self._repost()
            node = parent

    def _fill_up(self, node: int) -> None:
        """Bring an underfull node back to b children: from the nearest sibling, or by merging into it."""
        body = self.body
        while node != body.root and body.degree[node] < LEAST:
            sibling, parent = nearest_sibling(body, node), int(body.parent[node])
            if sibling < 0:
                return
            if body.degree[node] + body.degree[sibling] > MOST:
                self._move(sibling, node, nearest_children(body, sibling, node))
                return
            self._move(node, sibling, body.child[node, : body.degree[node]].copy())
            detach(body, parent, node)
            drop_node(body, node)
            node = parent
        if node == body.root and body.degree[node] == 1 and body.height[node] > 1:
            body.state[ROOT] = body.child[node, 0]
            body.parent[body.root] = NONE
            drop_node(body, node)
            self._repost()

    def _repost(self) -> None:
        """The levels have shifted: every entry's tokens find their nodes anew."""
        self.tokens = posted_tokens(self.body, self.entries, self.policy)


def clause_tokens(clauses: ClauseColumns) -> tuple[Int64, Int32]:
    """The clauses' tokens; ALWAYS for a clause without words. Clauses with other predicates are refused."""
    if clauses.pred_start[-1]:
        raise ValueError("an R^t tree takes clauses of a box and words; these have other predicates too")
    count = np.diff(clauses.word_start)
    if len(count) and count.max() > MOST_WORDS:
        raise ValueError(f"a clause has {count.max()} words; an R^t tree takes at most {MOST_WORDS}")
    start = np.concatenate([[0], np.cumsum(np.maximum(count, 1))])
    token = np.full(start[-1], ALWAYS, np.int32)
    wordless = np.repeat(count == 0, np.maximum(count, 1))
    token[~wordless] = clauses.word[clauses.word_start[0] : clauses.word_start[-1]] + 1
    return start, token


def any_word(names: Int32, clauses: ClauseColumns) -> tuple[Int32, ClauseColumns]:
    """Clauses that ask for *one* of their words, as clauses of one word each with the same name. [rttree, section 2.1]

    A clause without words asks for one of none, so nothing is left of it.
    """
    count = np.diff(clauses.word_start)
    row = np.repeat(np.arange(len(count)), count)
    alternatives = replace(
        take_clauses(clauses, row, clauses.owner[row]),
        word_start=np.arange(len(row) + 1, dtype=np.int64),
        word=clauses.word[clauses.word_start[0] : clauses.word_start[-1]],
    )
    return names[row], alternatives


@kernel
def link_names(entries: Entries, head: Int32, entry: Int32) -> int:
    """Put each entry at the head of its name's chain; returns how many chains had one already."""
    shared = 0
    for e in entry:
        name = entries.name[e]
        shared += head[name] >= 0
        entries.same[e] = head[name]
        head[name] = e
    return shared


@kernel
def entries_of(entries: Entries, head: Int32, names: Int32) -> Int32:
    """All entries of the names, chain after chain."""
    found = 0
    for name in names:
        entry = head[name]
        while entry >= 0:
            found += 1
            entry = entries.same[entry]
    result = np.empty(found, np.int32)
    found = 0
    for name in names:
        entry = head[name]
        while entry >= 0:
            result[found] = entry
            found += 1
            entry = entries.same[entry]
    return result


@kernel
def add_entries(body: Body, tokens: Tokens, entries: Entries, policy: int, entry: Int32, done: int) -> tuple[int, int]:
    """Place the entries from entry[done] on: (how many are placed, the leaf that became overfull or NONE).

    With NONE and entries left the token table has no space for the next.
    """
    levels = body.height[body.state[ROOT]]
    for i in range(done, len(entry)):
        words = entries.word_count[entry[i]]
        room = words * (2 * tokens.state[LONGEST] + 2)
        if tokens.state[KEYS] + words * levels > FULL * len(tokens.key):
            return i, NONE
        if len(tokens.start) > 0 and tokens.state[ROOM_USED] + room > len(tokens.posting):
            return i, NONE
        leaf = place(body, wide(entry[i]))
        post_path(body, tokens, entries, policy, wide(entry[i]), True)
        if body.degree[leaf] > MOST:
            return i + 1, leaf
    return len(entry), NONE


@kernel
def remove_entries(body: Body, tokens: Tokens, entries: Entries, policy: int, gone: Int32, done: int) -> tuple[int, int]:
    """Take out the entries from gone[done] on, until a leaf becomes underfull: (how many are out, the last one's leaf)."""
    leaf = NONE
    for i in range(done, len(gone)):
        post_path(body, tokens, entries, policy, wide(gone[i]), False)
        leaf = displace(body, wide(gone[i]))
        if body.degree[leaf] < LEAST:
            return i + 1, leaf
    return len(gone), leaf
