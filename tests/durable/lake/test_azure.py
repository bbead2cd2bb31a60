"""The same on a real Azure Blob server: put-if-absent, push, pull, the loser of a race."""

from __future__ import annotations

import threading

import pytest

import tidings as td
from tests.durable.lake.azure_server import AzureServer
from tests.durable.lake.samples import SCHEMA, START, answers, bulk, fill
from tidings.durable.lake.address import place_of
from tidings.durable.lake.lake import LostRace
from tidings.durable.lake.objects import objects_at

pytestmark = [pytest.mark.lake, pytest.mark.xdist_group("lake")]
URL = "az://container/deals"


@pytest.fixture
def server(tmp_path, monkeypatch):
    made = AzureServer(tmp_path / "azure", "container")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIDINGS_CACHE", str(tmp_path / "cache"))
    yield made
    made.stop()


def test_of_many_who_put_one_name_one_wins(server):
    objects, won = objects_at(place_of(URL)), list[int]()

    def race(writer: int) -> None:
        for key in range(10):
            if objects.put_new(f"manifests/{key:08d}.json", f"writer {writer}".encode()):
                won.append(key)

    threads = [threading.Thread(target=race, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(10))


def test_a_topic_on_azure_answers_as_the_one_it_came_from(tmp_path, server):
    with td.open(tmp_path / "source", "offers", SCHEMA) as source:
        fill(source)
        want = answers(source)
        assert source.push(URL) == 1
        with td.open(URL, mode="r") as read:
            assert answers(read) == want
        td.pull(URL, tmp_path / "pulled")
        with td.open(tmp_path / "pulled") as pulled:
            assert answers(pulled) == want
            pulled.subscribe_many(bulk(900, 5), time=START)
            assert pulled.push(URL) == 2
        source.subscribe("late", "price < 3", time=START)
        with pytest.raises(LostRace, match="at manifest 2 of another writer"):
            source.push(URL)
