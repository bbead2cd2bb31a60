"""`pg_notify` on a real PostgreSQL, started for the test by a user who is not root, as it demands."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.serve.conftest import DEALS, serving
from tidings.serve.settings import Settings


@pytest.fixture
def dsn() -> Iterator[str]:
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("there is no PostgreSQL on the path")
    folder = tempfile.mkdtemp()
    as_user: dict[str, Any] = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C"}}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    subprocess.run(["initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "t"], check=True, capture_output=True, **as_user)
    command = ["postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses="]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **as_user)
    try:
        yield f"host={folder} user=t dbname=postgres"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def connected(dsn: str) -> psycopg.Connection:
    deadline = time.monotonic() + 30
    while True:
        try:
            return psycopg.connect(dsn, autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_channel_hears_and_what_is_too_long_goes_without_its_event(tmp_path, dsn):
    with connected(dsn) as listening, serving(Settings(tmp_path / "data", open=True)) as client:
        listening.execute("LISTEN deals")
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={})
        client.put("/topics/deals/sinks/pg", json={"kind": "postgres", "dsn": dsn, "channel": "deals", "batch": 10})
        long = " ".join(f"w{number}" for number in range(3000))
        client.post("/topics/deals/events", json=[{"id": "short", "price": 1}, {"id": "long", "about": long}])
        heard = [note.payload for note in listening.notifies(timeout=30, stop_after=2)]
        assert '"event":{"id":"short","price":1.0}' in heard[0]
        assert '"event":null' in heard[1]
        assert client.get("/topics/deals/sinks/pg").json()["dsn"] == "***"
