"""Threads that publish at the same time share commits, and nobody fails by another."""

from __future__ import annotations

import threading

import tidings as td
from tidings.durable import turns
from tidings.errors import StorageError, TidingsError

SCHEMA = {"price": td.Number()}
THREADS, EACH = 8, 25


def published(topic, times=None):
    """Every thread publishes its own; what each was told, or how it failed. The lock is held until all wait."""
    told: dict[str, object] = {}

    def publish(thread):
        for i in range(EACH):
            id = f"e{thread}-{i}"
            try:
                told[id] = [
                    (n.subscription, n.event, n.why) for n in topic.publish({"id": id, "price": i}, time=times and times(id))
                ]
            except TidingsError as error:
                told[id] = str(error)

    with topic._writing:
        threads = [threading.Thread(target=publish, args=(thread,)) for thread in range(THREADS)]
        for thread in threads:
            thread.start()
        while len(topic.turns._waiting) < THREADS:
            threading.Event().wait(0.001)
    for thread in threads:
        thread.join()
    return told


def test_many_threads_share_commits_and_each_hears_of_its_own(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("cheap", "price < 10", time=0)
        told = published(topic)
        assert told == {
            f"e{t}-{i}": [("cheap", f"e{t}-{i}", "matched")] if i < 10 else [] for t in range(THREADS) for i in range(EACH)
        }
        assert topic.turns.taken == THREADS * EACH
        assert topic.turns.commits < topic.turns.taken
    with td.open(tmp_path) as topic:
        assert len(topic.search()) == THREADS * EACH
        assert len({note.event for _, note in topic.outbox(limit=10_000)}) == 10 * THREADS


def test_one_that_fails_fails_alone(tmp_path, monkeypatch):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("best", k=3, window="100 events", by="price", time=0)
        done = topic.record._put_each

        def failing(db, events, publisher):
            done(db, events, publisher)
            if events.ids[0].endswith("-7"):
                raise StorageError("no more room")

        monkeypatch.setattr(topic.record, "_put_each", failing)
        told = published(topic)
        assert {id for id, said in told.items() if said == "no more room"} == {f"e{t}-7" for t in range(THREADS)}
        left = sorted(id for id, said in told.items() if said != "no more room")
        assert topic.search()["id"].to_pylist() == left
        top = topic.top("best")
    with td.open(tmp_path) as topic:
        assert topic.search()["id"].to_pylist() == left
        assert topic.top("best") == top


def test_a_commit_that_fails_is_nobodys_success(tmp_path, monkeypatch):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        monkeypatch.setattr(turns, "MOST", THREADS)
        left = [3]
        release = topic.registry.together

        class Interrupted:
            def __enter__(self):
                self.inner = release()
                self.inner.__enter__()

            def __exit__(self, *raised):
                left[0] -= 1
                if left[0] < 0:
                    return self.inner.__exit__(*raised)
                failure = StorageError("the disk is full")
                self.inner.__exit__(StorageError, failure, None)
                raise failure

        monkeypatch.setattr(topic.registry, "together", Interrupted)
        told = published(topic)
        failed = {id for id, said in told.items() if isinstance(said, str)}
        assert all(said == "the disk is full" for said in told.values() if isinstance(said, str))
        assert 1 <= len(failed) <= 3
        assert topic.search()["id"].to_pylist() == sorted(told.keys() - failed)
