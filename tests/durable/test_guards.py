"""What a durable topic is guarded against: lost and swapped files, damaged rows, forks, links, neighbours, late failures."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat

import pyarrow as pa
import pytest

import tidings as td
from tidings.errors import StorageError, StorageWarning

SCHEMA = td.Schema({"price": td.Number(), "brand": td.Category()})
EVENT = {"id": "e", "price": 5.0, "brand": "a"}


def made(folder, count=3):
    with td.open(folder, "t", SCHEMA) as topic:
        for i in range(count):
            topic.subscribe(f"s{i}", f"price > {i}", time=0)
            topic.flush()
        topic.publish(EVENT, time=1)
    return [f"s{i}" for i in range(count)]


def heard(topic):
    return [m.subscription for m in topic.match(EVENT, time=1)]


@pytest.mark.parametrize("loss", ["deleted", "emptied"])
@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_lost_registry_beside_manifests_is_no_new_topic(tmp_path, loss, mode):
    made(tmp_path)
    registry = tmp_path / "registry.sqlite"
    registry.unlink() if loss == "deleted" else registry.write_bytes(b"")
    with pytest.raises(StorageError, match=r"has manifests of a topic|holds no topic"):
        td.open(tmp_path, "t", SCHEMA, mode=mode)


def test_two_segments_that_changed_places_are_found(tmp_path):
    expected = made(tmp_path)
    one, other = sorted((tmp_path / "segments").glob("*.segment"))[:2]
    aside = tmp_path / "aside"
    shutil.move(one, aside)
    shutil.move(other, one)
    shutil.move(aside, other)
    with pytest.warns(StorageWarning, match="another file"), td.open(tmp_path) as topic:
        assert heard(topic) == expected


@pytest.mark.parametrize("table", ["subscription", "chunk", "event", "state", "outbox"])
def test_a_damaged_row_of_the_registry_is_named(tmp_path, table):
    made(tmp_path)
    with td.open(tmp_path) as topic:
        topic.subscribe_many(pa.table({"id": ["c"], "price.lo": [1.0]}), time=1)
        topic.subscribe("w", "price > 0", k=1, window="1 day", by="price", time=1)
        topic.publish({**EVENT, "id": "f"}, time=2)
        topic.abandon()
    shutil.rmtree(tmp_path / "segments")
    for path in tmp_path.glob("manifest*"):
        path.unlink()
    with sqlite3.connect(tmp_path / "registry.sqlite") as db:
        damaged = "CAST(replace(CAST(body AS TEXT), 'price', 'prise') AS TEXT)" if table != "chunk" else "substr(body, 1, 200)"
        if table in ("state", "outbox"):
            damaged = "body || ' '"
        assert db.execute(f"UPDATE {table} SET body = {damaged}").rowcount
    db.close()
    if table == "state":
        with pytest.warns(StorageWarning, match="state"), td.open(tmp_path) as topic:
            assert len(topic) == 5
    else:
        with pytest.raises(StorageError, match=f"damaged: {table}"), td.open(tmp_path) as topic:
            topic.outbox()


def test_a_damaged_meta_row_is_said(tmp_path):
    made(tmp_path)
    with sqlite3.connect(tmp_path / "registry.sqlite") as db:
        db.execute("UPDATE meta SET value = '{' WHERE name = 'schema'")
    db.close()
    with pytest.raises(StorageError, match="is damaged: meta"):
        td.open(tmp_path)


def test_two_publications_of_one_event_that_come_into_a_list_at_once_both_wait_in_the_outbox(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe("s", "price >= 0", k=2, window="9 s", by="-price", time=0)
        topic.publish_batch([{"id": "a", "price": 0, "expires": 5}, {"id": "b", "price": 0, "expires": 5}], time=1)
        topic.publish({"id": "e", "price": 3}, time=2)
        topic.publish({"id": "e", "price": 2}, time=2)
        told = list(topic.advance(5))
        assert [(n.event, n.score, n.why) for n in told] == [("e", -2.0, "promoted"), ("e", -3.0, "promoted")]
        assert len({n.id for n in told}) == 2
        assert [note for _, note in topic.outbox()][-2:] == told


@pytest.mark.parametrize("kind", [pa.uint64(), pa.int8(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_a_table_whose_ids_are_no_plain_texts_outlives_changes_and_a_restart(tmp_path, kind):
    ids = (
        pa.array(["1", "2", "3"]).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(["1", "2", "3"]).dictionary_encode()
    )
    with td.open(tmp_path, "t", SCHEMA) as topic:
        topic.subscribe_many(pa.table({"id": ids, "price.lo": [1.0, 1.0, 1.0]}), time=0)
        topic.subscribe("s39", time=0)
        topic.unsubscribe("2")
        topic.subscribe("s39", time=0)
        topic.flush()
        assert heard(topic) == ["1", "3", "s39"]
    for path in tmp_path.glob("manifest*"):
        path.unlink()
    with td.open(tmp_path) as topic:
        assert heard(topic) == ["1", "3", "s39"]


def test_an_empty_pin_holds_nothing_up(tmp_path):
    made(tmp_path)
    pin = tmp_path / "pins" / "query" / "1.json"
    pin.parent.mkdir(parents=True)
    pin.touch()
    with td.open(tmp_path) as topic:
        topic.subscribe("late", "price > 4", time=2)
        topic.flush()


def in_child(act) -> str:
    """What `act` gives or raises in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = repr(act())
        except BaseException as error:  # noqa: BLE001 - a child must not run the tests' clean-up
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_may_read_and_not_change(tmp_path):
    expected = made(tmp_path)
    with td.open(tmp_path) as topic:
        assert in_child(lambda: heard(topic)) == repr(expected)
        for act in (lambda: topic.subscribe("x", time=2), lambda: topic.unsubscribe("s0"), lambda: topic.publish(EVENT, time=2)):
            assert "StorageError" in (said := in_child(act))
            assert "open it again here" in said
        assert in_child(topic.close) == "None"
        topic.subscribe("parent", time=3)
    with td.open(tmp_path, mode="r") as topic:
        assert heard(topic) == ["parent", *expected]


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_of_a_topic_in_memory_goes_its_own_way():
    topic = td.Topic("t", SCHEMA)
    topic.subscribe("a", time=0)
    topic.flush()
    assert in_child(lambda: (topic.subscribe("b", time=0), topic.flush(), heard(topic))[2]) == "['a', 'b']"
    assert heard(topic) == ["a"]


def test_files_are_as_private_as_their_folder(tmp_path):
    made(tmp_path / "own")
    (tmp_path / "shared").mkdir(mode=0o755)
    made(tmp_path / "shared")
    for path in [tmp_path / "own", *(tmp_path / "own").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((tmp_path / "shared" / "registry.sqlite").stat().st_mode) == 0o644


def test_a_link_in_the_lock_s_place_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    folder = tmp_path / "topic"
    folder.mkdir()
    (folder / "writer.lock").symlink_to(precious)
    with pytest.raises(StorageError, match="cannot write"):
        td.open(folder, "t", SCHEMA)
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("method", ["put", "remove", "put_segment"])
def test_a_failure_after_the_commit_leaves_memory_as_the_registry_is(tmp_path, monkeypatch, error, method):
    made(tmp_path)
    with td.open(tmp_path) as topic:

        def fail(*_):
            raise error

        acts = {
            "put": lambda: topic.subscribe("x", "price > 1", time=2),
            "remove": lambda: topic.unsubscribe("s1"),
            "put_segment": lambda: topic.subscribe_many(pa.table({"id": ["x", "s0"], "price.lo": [1.0, 9.0]}), time=2),
        }
        monkeypatch.setattr(topic.store, method, fail)
        with pytest.raises(error):
            acts[method]()
        monkeypatch.undo()
        now = heard(topic)
        topic.subscribe("after", time=3)
        assert heard(topic) == sorted([*now, "after"])
        topic.flush()
    with td.open(tmp_path, mode="r") as topic:
        assert heard(topic) == sorted([*now, "after"])


def test_the_file_shrinks_when_notifications_were_acknowledged(tmp_path):
    with td.open(tmp_path, "t", SCHEMA) as topic:
        for i in range(40):
            topic.subscribe(f"s{i}", time=0)
        topic.publish_batch([{**EVENT, "id": f"e{i}", "expires": 50} for i in range(200)], time=1)
        [(number, _)] = topic.outbox()[-1:]
        topic.registry.read("PRAGMA wal_checkpoint(TRUNCATE)")
        before = (tmp_path / "registry.sqlite").stat().st_size
        last = max(number for number, _ in topic.outbox(limit=100_000))
        topic.acknowledge(last)
        topic.registry.read("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (tmp_path / "registry.sqlite").stat().st_size < before / 2
        assert number <= last
