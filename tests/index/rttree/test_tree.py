"""R^t, R^t+ and R^t++ against one oracle: all of the words, one of the words, points and ranges, insertions and deletions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.oracle.place_words import PlaceWordsOracle
from tidings.index.blocks.words import WordBlocks
from tidings.index.rttree.filtering import FIRST_ROOM
from tidings.index.rttree.policy import POLICIES
from tidings.index.rttree.representative_tokens import ORDERS, Frequencies, greedy_hitting_set
from tidings.index.rttree.tree import RtTree, any_word
from tidings.model.columns.arrays import MISSING_BOX, NO_BOX, ClauseColumns, EventColumns

WORDS, ALL_WORDS = 12, 80
"""Most clauses have words of the first few; all together are more than LONG, from which on R^t++ reads leaves before lists."""


def clause_columns(rows):
    """Clauses of (box, words)."""
    start = np.cumsum([0, *(len(words) for _, words in rows)], dtype=np.int64)
    none = np.zeros(0)
    return ClauseColumns(
        owner=np.arange(len(rows), dtype=np.int32),
        pred_start=np.zeros(len(rows) + 1, np.int64),
        pred_dim=none.astype(np.int16),
        pred_kind=none.astype(np.uint8),
        pred_lo=none,
        pred_hi=none,
        pool=none.astype(np.int32),
        box=np.array([box for box, _ in rows], np.float64).reshape(-1, 4),
        word_start=start,
        word=np.array([word for _, words in rows for word in sorted(words)], np.int32),
        residue=np.zeros(len(rows), np.bool_),
    )


def event_columns(rows):
    clauses = clause_columns(rows)
    return EventColumns(np.zeros((len(rows), 2)), clauses.box, clauses.word_start, clauses.word)


def pairs(matches):
    found = sorted(zip(*(side.tolist() for side in matches), strict=True))
    assert len(found) == len(set(found))
    return found


eighths = st.integers(0, 32).map(lambda i: i / 8)
sides = st.integers(0, 12).map(lambda i: i / 8)
ranges = st.tuples(eighths, eighths, sides, sides).map(lambda p: (p[0], p[1], p[0] + p[2], p[1] + p[3]))
points = st.tuples(eighths, eighths).map(lambda p: (p[0], p[1], p[0], p[1]))
boxes = st.one_of(ranges, points, st.just(NO_BOX))
words = st.frozensets(st.integers(0, WORDS - 1), max_size=6)
clauses = st.lists(st.tuples(boxes, words), min_size=1, max_size=5)
long_words = st.frozensets(st.integers(0, ALL_WORDS - 1), max_size=20).map(
    lambda missing: frozenset(range(ALL_WORDS + 9)) - missing
)
messages = st.tuples(st.one_of(ranges, points, st.just(MISSING_BOX)), st.frozensets(st.integers(0, WORDS + 3), max_size=WORDS))


def many(seed, count):
    """Enough clauses at once to split nodes and raise the root."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 32, (count, 2)) / 8
    box = np.hstack([corner, corner + rng.integers(0, 6, (count, 2)) / 8])
    wanted = [set(rng.choice(WORDS, rng.integers(0, 6), replace=False).tolist()) for _ in range(count)]
    rare = rng.integers(-ALL_WORDS, ALL_WORDS, count).tolist()
    return [(tuple(b), words | {word} if word >= 0 else words) for b, words, word in zip(box.tolist(), wanted, rare, strict=True)]


class Trees(RuleBasedStateMachine):
    """Every tree, asked for all words and for one word, beside the oracle."""

    @initialize(order=st.sampled_from(sorted(ORDERS)), box_first=st.booleans())
    def plant(self, order, box_first):
        self.next_name = 0
        self.all_words = PlaceWordsOracle(every=True)
        self.one_word = PlaceWordsOracle(every=False)
        self.every = [RtTree(policy, order, box_first=box_first) for policy in POLICIES]
        self.either = [RtTree(policy, order, box_first=box_first) for policy in POLICIES]

    def insert(self, rows):
        names = np.arange(self.next_name, self.next_name + len(rows), dtype=np.int32)
        self.next_name += len(rows)
        columns = clause_columns(rows)
        for index in (self.all_words, self.one_word, *self.every):
            index.insert(names, columns)
        for tree in self.either:
            tree.insert(*any_word(names, columns))

    @rule(rows=clauses)
    def insert_few(self, rows):
        self.insert(rows)

    @rule(seed=st.integers(0, 99), count=st.integers(30, 150))
    def insert_many(self, seed, count):
        self.insert(many(seed, count))

    @precondition(lambda self: len(self.all_words))
    @rule(data=st.data(), share=st.sampled_from([0.02, 0.3, 0.9, 1.0]))
    def delete(self, data, share):
        names = np.array([name for name, _, _ in self.all_words.clauses], np.int32)
        order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(names))
        gone = names[order[: max(1, int(share * len(names)))]]
        with_words = np.array([name for name, _, wanted in self.one_word.clauses if wanted], np.int32)
        for tree in self.either:
            tree.delete(np.intersect1d(gone, with_words))
        for index in (self.all_words, self.one_word, *self.every):
            index.delete(gone)

    @rule(rows=st.lists(messages, min_size=1, max_size=4))
    def match(self, rows):
        self.compare(event_columns(rows))

    @precondition(lambda self: len(self.all_words))
    @rule(data=st.data(), corner=st.integers(0, 3), extra=words)
    def match_on_a_corner(self, data, corner, extra):
        _, box, wanted = data.draw(st.sampled_from(self.all_words.clauses[:20]))
        x, y = box[0 if corner < 2 else 2], box[1 if corner % 2 else 3]
        self.compare(event_columns([((x, y, x, y), wanted | extra), ((x, y, x + 1, y + 1), wanted), ((x, y, x, y), wanted - {3})]))

    @rule(box=st.one_of(ranges, points), has=long_words)
    def match_a_long_message(self, box, has):
        self.compare(event_columns([(box, has)]))

    def compare(self, events):
        expected = pairs(self.all_words.match_batch(events))
        for tree in self.every:
            assert pairs(tree.match_batch(events)) == expected
        self.compare_product(events, expected)
        expected = pairs(self.one_word.match_batch(events))
        for tree in self.either:
            assert pairs(tree.match_batch(events)) == expected

    def compare_product(self, events, expected):
        """The word lists of a segment, which take the clauses that have words."""
        clauses = [clause for clause in self.all_words.clauses if clause[2]]
        if clauses:
            names = np.array([name for name, _, _ in clauses], np.int32)
            lists = WordBlocks.build(clause_columns([(box, wanted) for _, box, wanted in clauses]), names)
            with_words = set(names.tolist())
            assert pairs(lists.match_batch(events)) == [pair for pair in expected if pair[1] in with_words]

    @invariant()
    def sane(self):
        for tree in getattr(self, "every", []):
            tree.check()
            assert len(tree) == len(self.all_words)
        for tree in getattr(self, "either", []):
            tree.check()


Trees.TestCase.settings = settings(max_examples=40, stateful_step_count=10, deadline=None)
TestTrees = pytest.mark.deep(Trees.TestCase)


@pytest.mark.soak
def test_trees_soak():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Trees, settings=settings(max_examples=500, stateful_step_count=30, deadline=None))


@pytest.mark.deep
@pytest.mark.parametrize("policy", POLICIES)
def test_three_levels_of_insertion_and_deletion(policy):
    """Thousands of entries one batch after another: the root rises twice, then falls back."""
    tree, oracle = RtTree(policy), PlaceWordsOracle()
    rows = many(1, 3200)
    for first in range(0, len(rows), 400):
        names = np.arange(first, first + 400, dtype=np.int32)
        tree.insert(names, clause_columns(rows[first : first + 400]))
        oracle.insert(names, clause_columns(rows[first : first + 400]))
    tree.check()
    assert tree.body.levels >= 2
    events = event_columns([((1.0, 1.0, 1.0, 1.0), set(range(8))), ((0.5, 0.5, 3.0, 3.0), {1, 4, 5}), (MISSING_BOX, {1})])
    assert pairs(tree.match_batch(events)) == pairs(oracle.match_batch(events))
    order = np.random.default_rng(2).permutation(3200).astype(np.int32)
    for gone in np.array_split(order[:3150], 10):
        tree.delete(gone)
        oracle.delete(gone)
        tree.check()
        assert pairs(tree.match_batch(events)) == pairs(oracle.match_batch(events))
    assert tree.body.levels == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_arrays_carry_the_tree(policy):
    tree = RtTree(policy, "locality")
    tree.insert(np.arange(200, dtype=np.int32), clause_columns(many(3, 200)))
    events = event_columns([((1.0, 1.0, 2.0, 2.0), set(range(9))), ((2.0, 2.0, 2.0, 2.0), {1, 2, 3})])
    again = RtTree.from_arrays(tree.arrays())
    again.check()
    assert pairs(again.match_batch(events)) == pairs(tree.match_batch(events))


def test_more_matches_than_the_first_buffer_holds():
    tree, count = RtTree(), FIRST_ROOM * 3 // 4
    tree.insert(np.arange(count, dtype=np.int32), clause_columns([((0, 0, 1, 1), set())] * count))
    event, name = tree.match_batch(event_columns([((1, 1, 1, 1), {5}), ((2, 2, 2, 2), set()), ((0, 0, 0, 0), set())]))
    assert np.bincount(event, minlength=3).tolist() == [count, 0, count]
    assert len(set(name.tolist())) == count


AIMED = {
    "an edge in common": ((1, 1, 2, 2), {1}, (2, 1, 3, 2), {1}, True),
    "an eighth apart": ((1, 1, 2, 2), {1}, (2.125, 1, 3, 2), {1}, False),
    "a point on a corner": ((1, 1, 2, 2), {1}, (2, 2, 2, 2), {1}, True),
    "a point beside a corner": ((1, 1, 2, 2), {1}, (2, 2.125, 2, 2.125), {1}, False),
    "a point on a point": ((1, 1, 1, 1), {1}, (1, 1, 1, 1), {1}, True),
    "no box, no place": (NO_BOX, {1}, MISSING_BOX, {1}, True),
    "a box, no place": ((1, 1, 2, 2), {1}, MISSING_BOX, {1}, False),
    "no words on either side": ((1, 1, 2, 2), set(), (1, 1, 1, 1), set(), True),
    "no words wanted": ((1, 1, 2, 2), set(), (1, 1, 1, 1), {1, 2}, True),
    "no words had": ((1, 1, 2, 2), {1}, (1, 1, 1, 1), set(), False),
    "one word of many": ((1, 1, 2, 2), {7}, (1, 1, 1, 1), set(range(60)), True),
    "more words than levels": ((1, 1, 2, 2), set(range(9)), (1, 1, 1, 1), set(range(9)), True),
    "the last of more words than levels is missing": ((1, 1, 2, 2), set(range(9)), (1, 1, 1, 1), set(range(8)), False),
    "more words than levels, a long message": ((1, 1, 2, 2), set(range(9)), (1, 1, 1, 1), set(range(70)), True),
    "only unknown words": ((1, 1, 2, 2), {1}, (1, 1, 1, 1), {500, 501}, False),
    "an unknown word besides": ((1, 1, 2, 2), {1}, (1, 1, 1, 1), {1, 500}, True),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_aimed_cases(policy):
    """Each clause once among thousands far away, which have all the words, and once alone."""
    crowd = [((50 + x, 50 + y, 51 + x, 51 + y), {word % ALL_WORDS}) for word, (x, y) in enumerate(np.ndindex(60, 60))]
    rows = [(box, wanted) for box, wanted, *_ in AIMED.values()]
    for others in (crowd, []):
        tree = RtTree(policy)
        tree.insert(np.arange(len(rows + others), dtype=np.int32), clause_columns(rows + others))
        assert tree.body.levels == (2 if others else 1)
        event, name = tree.match_batch(event_columns([(at, has) for _, _, at, has, _ in AIMED.values()]))
        for number, (case, (*_, matches)) in enumerate(AIMED.items()):
            assert (number in name[event == number]) == matches, case


def test_scratch_is_used_again_and_numbers_begin_anew():
    tree, event = RtTree(), event_columns([((1.0, 1.0, 1.0, 1.0), {1, 2})])
    tree.insert(np.arange(2, dtype=np.int32), clause_columns([((0, 0, 1, 1), {1}), ((0, 0, 1, 1), {3})]))
    for last in (0, 5, (1 << 30) - 2, (1 << 30) - 1, 7):
        for scratch in tree._scratches._idle:
            scratch.number[:] = last
        assert pairs(tree.match_batch(event)) == [(0, 0)]
        assert len(tree._scratches._idle) == 1
    tree.insert(np.array([9], np.int32), clause_columns([((0, 0, 1, 1), {1, 2})]))
    assert pairs(tree.match_batch(event)) == [(0, 0), (0, 9)]


def test_refusals():
    tree = RtTree()
    tree.insert(np.array([4], np.int32), clause_columns([((0, 0, 1, 1), {1})]))
    with pytest.raises(KeyError, match=r"\[3\] are not in the tree"):
        tree.delete(np.array([4, 3], np.int32))
    assert len(tree) == 1
    columns = clause_columns([((0, 0, 1, 1), {1})])
    columns.pred_start[-1] = 1
    with pytest.raises(ValueError, match="other predicates"):
        tree.insert(np.array([5], np.int32), columns)


def test_the_greedy_hitting_set_is_the_papers_example():
    """Figure 4a: iphone4s stands for nine subscriptions, ipad2 for the other three."""
    iphone, ipad, att, verizon, gb32, gb64 = range(6)
    subscriptions = [
        {iphone, att, gb32}, {iphone, verizon}, {ipad, gb64}, {iphone, verizon}, {iphone, verizon}, {iphone, verizon},
        {att, ipad}, {att, ipad, iphone}, {iphone, gb32}, {gb32, att, iphone}, {iphone, ipad, att}, {gb64, ipad},
    ]  # fmt: skip
    columns = clause_columns([((0, 0, 1, 1), words) for words in subscriptions])
    frequencies = Frequencies(local=False)
    frequencies.add(columns.box, columns.word_start, columns.word)
    chosen = columns.word[greedy_hitting_set(frequencies.df, columns.word_start, columns.word)]
    assert chosen.tolist() == [iphone, iphone, ipad, iphone, iphone, iphone, ipad, iphone, iphone, iphone, iphone, ipad]
    rarest = ORDERS["idf"](frequencies, columns.box, columns.word_start, columns.word)
    assert rarest[columns.word_start[:-1]].tolist()[:3] == [gb32, verizon, gb64]


def test_locality_prefers_the_word_that_is_rare_nearby():
    """Word 0 is common on the left and unknown on the right, word 1 the other way round."""
    left, right = (0.0, 0.0, 1.0, 1.0), (90.0, 90.0, 91.0, 91.0)
    rows = [(left, {0})] * 5 + [(right, {1})] * 9 + [(left, {0, 1}), (right, {0, 1})]
    columns = clause_columns(rows)
    frequencies = Frequencies(local=True)
    frequencies.add(columns.box, columns.word_start, columns.word)
    local = ORDERS["locality"](frequencies, columns.box, columns.word_start, columns.word)
    first = local[columns.word_start[:-1]]
    assert first[-2:].tolist() == [1, 0]
    assert ORDERS["idf"](frequencies, columns.box, columns.word_start, columns.word)[columns.word_start[-2]] == 0


def test_locality_breaks_ties_by_the_frequency_everywhere():
    """Both words come once in the cell; the one with the larger code is the rarer."""
    rows = [((90.0, 90.0, 91.0, 91.0), {0})] * 3 + [((0.0, 0.0, 1.0, 1.0), {0, 1})]
    columns = clause_columns(rows)
    frequencies = Frequencies(local=True)
    frequencies.add(columns.box, columns.word_start, columns.word)
    assert ORDERS["locality"](frequencies, columns.box, columns.word_start, columns.word)[-2:].tolist() == [1, 0]
