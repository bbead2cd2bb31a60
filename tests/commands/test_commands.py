"""Commands as a user types them, against a folder and against a real service: the same answers."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.serve.conftest import serving
from tidings.cli import app
from tidings.errors import TidingsError
from tidings.serve.settings import Settings

OFFERS = pa.table(
    {
        "id": [f"e{number}" for number in range(4)],
        "price": [10.0, 20.0, 30.0, 4000.0],
        "brand": ["a", "b", "a", "c"],
        "about": ["red shoes in town", "a blue bicycle bell", "green tea from afar", "an old piano to give"],
        "made": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
        "fresh": [True, False, True, True],
        "place": [{"x": 1.0, "y": 2.0}] * 4,
        "photo": [b"", b"", b"", b""],
    }
)


def tidings(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(*arguments: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in tidings(*arguments, "--json").splitlines()]


@pytest.fixture(params=["folder", "service"])
def where(request, tmp_path):
    if request.param == "folder":
        yield str(tmp_path / "deals")
    else:
        with serving(Settings(tmp_path / "data", open=True)) as client:
            yield f"{str(client.base_url).rstrip('/')}/deals"


def test_from_a_file_to_an_answer(where, tmp_path):
    offers = tmp_path / "offers.parquet"
    pq.write_table(OFFERS, offers)
    made = json.loads(tidings("init", where, offers))
    assert {name: spec["type"] for name, spec in made.items()} == {
        "price": "number",
        "brand": "category",
        "about": "words",
        "made": "time",
        "fresh": "bool",
        "place": "place",
    }
    tidings("subscribe", where, "ann", "price < 25", "--owner", "u17", "--tag", "shop")
    tidings("subscribe", where, "bob", "--k", "2", "--window", "1 day", "--by", "-price")
    lines = tmp_path / "more.ndjson"
    lines.write_text('{"id": "cat", "filter": "brand = \'a\'"}\n{"id": "dan", "filter": "brand = \'z\'"}\n')
    assert rows("load", where, lines) == [{"taken": 2, "rows": 2}]
    assert [row["id"] for row in rows("subscriptions", where)] == ["ann", "bob", "cat", "dan"]
    assert [row["id"] for row in rows("subscriptions", where, "--owner", "u17")] == ["ann"]
    assert rows("publish", where, offers) == [{"events": 4, "told": 2 + 2 + 2}]
    event = json.dumps({"id": "e9", "price": 5, "brand": "a"})
    assert {row["subscription"] for row in rows("match", where, event)} == {"ann", "bob", "cat"}
    assert len(rows("match", where, event, "--k", "1")) == 1
    assert "price is 5000, wanted below 25" in tidings("explain", where, json.dumps({"id": "e", "price": 5000}), "ann")
    assert [row["id"] for row in rows("search", where, "price > 25")] == ["e2", "e3"]
    assert [row["event"] for row in rows("top", where, "bob")] == ["e0", "e1"]
    assert {row["subscription"] for row in rows("publish", where, event)} == {"ann", "bob", "cat"}
    [seen] = rows("preview", where, "price < 25", "--over", "36500 days")
    assert (seen["told"], seen["events"]) == (3, 5)
    tidings("unsubscribe", where, "ann", "bob")
    [found] = rows("stats", where)
    assert found["subscriptions"] == 2
    table = tidings("subscriptions", where)
    assert table.splitlines()[0].split()[:2] == ["id", "filter"]
    place = where.rpartition("/")[0]
    assert [row["name"] for row in rows("topics", place)] == ["deals"]


def test_users_texts_are_texts(where, tmp_path):
    offers = tmp_path / "offers.parquet"
    pq.write_table(OFFERS, offers)
    tidings("init", where, offers)
    tidings("subscribe", where, "[red]x[/red]")
    assert "[red]x[/red]" in tidings("subscriptions", where)


def test_mistakes_are_one_sentence(tmp_path):
    with pytest.raises(TidingsError, match="holds no topic"):
        tidings("match", tmp_path / "nowhere", "{}")
    with pytest.raises(TidingsError, match="there is no file"):
        tidings("init", tmp_path / "deals", tmp_path / "offers.csv")
    pq.write_table(OFFERS, tmp_path / "offers.parquet")
    tidings("init", tmp_path / "deals", tmp_path / "offers.parquet")
    with pytest.raises(TidingsError, match="a folder tells nobody"):
        tidings("listen", tmp_path / "deals")
    with pytest.raises(TidingsError, match="names no topic"):
        tidings("match", "http://127.0.0.1:9/", "{}")


def test_a_keyed_topic_and_a_job(tmp_path):
    (tmp_path / "flats.csv").write_text("sku,rent\na,100\nb,200\n")
    tidings("init", tmp_path / "flats", tmp_path / "flats.csv", "--by", "sku")
    tidings("subscribe", tmp_path / "flats", "ann", "--k", "1", "--by", "-rent")
    assert rows("publish", tmp_path / "flats", tmp_path / "flats.csv") == [{"events": 2, "told": 1}]
    tidings("init", "flats", tmp_path / "flats.csv", "--job", tmp_path / "job.toml")
    assert 'name = "flats"' in (tmp_path / "job.toml").read_text()


def test_listening(tmp_path):
    with serving(Settings(tmp_path / "data", open=True)) as client:
        client.put("/topics/deals", json={"schema": {"price": "number"}})
        where = f"{str(client.base_url).rstrip('/')}/deals"
        tidings("subscribe", where, "ann", "price < 5")
        tidings("publish", where, '{"id": "e1", "price": 1}')
        [heard] = rows("listen", where, "ann", "--after", 0, "--count", 1)
        assert (heard["subscription"], heard["event"]["id"], heard["why"]) == ("ann", "e1", "matched")


def test_keys_of_a_folder_and_of_the_service_on_it(tmp_path):
    folder = tmp_path / "data"
    [admin] = rows("keys", "make", folder, "--scope", "admin", "--name", "first")
    with serving(Settings(folder)) as client:
        url = str(client.base_url).rstrip("/")
        assert client.get("/topics").status_code == 401
        [reader] = rows("keys", "make", url, "--scope", "read", "--quota", "k=10", "--key", admin["key"])
        assert rows("topics", url, "--key", reader["key"]) == []
        with pytest.raises(TidingsError):
            tidings("keys", "list", url, "--key", reader["key"])
        assert [key["name"] for key in rows("keys", "list", url, "--key", admin["key"])] == ["first", ""]
        tidings("keys", "withdraw", url, reader["id"], "--key", admin["key"])
    with pytest.raises(TidingsError, match="scopes"):
        tidings("keys", "make", folder, "--scope", "king")


def test_sinks_and_dead_letters(tmp_path):
    with serving(Settings(tmp_path / "data", open=True, allow=("127.0.0.1",))) as client:
        client.put("/topics/deals", json={"schema": {"price": "number"}})
        where = f"{str(client.base_url).rstrip('/')}/deals"
        said = json.dumps({"kind": "webhook", "url": "http://127.0.0.1:9/told"})
        [made] = rows("sinks", "make", where, "shop", said)
        assert made["secret"].startswith("whsec_")
        assert [sink["name"] for sink in rows("sinks", "list", where)] == ["shop"]
        [anew] = rows("sinks", "rotate", where, "shop")
        assert anew["secret"] != made["secret"]
        assert rows("dead-letters", "list", where, "shop") == []
        tidings("sinks", "remove", where, "shop")
        assert rows("sinks", "list", where) == []
    with pytest.raises(TidingsError, match="delivers to nobody"):
        tidings("sinks", "list", tmp_path / "data")
