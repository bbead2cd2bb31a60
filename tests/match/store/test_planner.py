"""Which home the planner gives a clause, and that the answers do not depend on it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tidings.match.store.event_statistics import Statistics
from tidings.model.columns.arrays import EventColumns, Vocabularies, encode_clauses
from tidings.model.filter.clause import Clause

SCHEMA = td.Schema({"place": td.Place(plane=True), "about": td.Words("as-is")})
VOCABULARY = 100


def table(rng: np.random.Generator, n: int) -> pa.Table:
    corner = rng.integers(0, 800, (n, 2)) / 8
    words = [[f"w{w}" for w in rng.choice(VOCABULARY, 2, replace=False)] for _ in range(n)]
    boxes = pa.array(np.hstack([corner, corner + 4]).ravel())
    columns = {"id": [f"s{i}" for i in range(n)], "place.box": pa.FixedSizeListArray.from_arrays(boxes, 4), "about.all": words}
    return pa.table(columns | {"score": rng.integers(0, 4, n).astype(float)})


def messages(rng: np.random.Generator, n: int, words: int) -> list[dict]:
    points = (rng.integers(0, 808, (n, 2)) / 8).tolist()
    return [
        {"id": f"e{i}", "place": point, "about": [f"w{w}" for w in rng.choice(VOCABULARY, words, replace=False)]}
        for i, point in enumerate(points)
    ]


@pytest.mark.parametrize(("words", "home"), [(10, "words"), (60, "rt")])
def test_long_messages_bring_clauses_into_the_tree_and_change_no_answer(words, home, tmp_path):
    rng = np.random.default_rng(3)
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe_many(table(rng, 4000), time=0)
        assert set(topic.stats()["homes"]) == {"words"}, "no event was seen yet"
        batch = messages(rng, 300, words)
        before, best = topic.match_batch(batch, time=0), topic.match_batch(batch, 2, time=0)
        assert len(before)
        topic.merge()
        topic.flush()
        assert set(topic.stats()["homes"]) == {home}
        with td.open(tmp_path, mode="r") as reader:
            for again in (topic, reader):
                assert again.match_batch(batch, time=0) == before
                assert again.match_batch(batch, 2, time=0) == best
                assert again.match(batch[0], time=0) == topic.match(batch[0], time=0)
                assert again.subscription("s7").clauses == topic.subscription("s7").clauses
                assert again.explain(batch[0], before["subscription"][0].as_py(), time=0).home == (home,)
        first, second = before["subscription"][0].as_py(), before["subscription"][-1].as_py()
        topic.unsubscribe(first)
        topic.move(second, (50, 50))
        kept = [m for m in before.to_pylist() if m["subscription"] not in (first, second)]
        assert [m for m in topic.match_batch(batch, time=0).to_pylist() if m["subscription"] != second] == kept
        topic.store.snapshot.segments[0].check()


def test_a_clause_stands_under_the_word_that_is_rarest_where_it_is():
    """`sea` is rarer than `hill` everywhere taken together, and common on the coast."""
    statistics, vocabularies = Statistics(), Vocabularies(SCHEMA)
    here, there = (0.0, 0.0, 0.0, 0.0), (8.0, 8.0, 8.0, 8.0)
    clauses = [Clause(box=box, words=frozenset(("sea", "hill"))) for box in (here, there, None)]
    columns = encode_clauses(SCHEMA, vocabularies, [*clauses, Clause(box=here)], range(4))
    sea, hill = vocabularies.words.code("sea"), vocabularies.words.code("hill")
    events = [(here, [sea])] * 100 + [(here, [])] * 10 + [(there, [hill])] * 150 + [(there, [])] * 10
    for box, words in events:
        statistics.observe(EventColumns(np.zeros((1, 2)), np.array([box]), np.array([0, len(words)]), np.array(words, np.int32)))
    nearby = statistics.nearby(columns)
    assert nearby.word.tolist() == [hill, sea, sea, -1]
    assert nearby.share[0] < 0.2
    assert nearby.share[3] == 1.0
