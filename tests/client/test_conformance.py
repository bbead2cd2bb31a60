"""Embedded, durable and remote are one interface: the state machine of the topic over a client of a real service."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from uuid import uuid4

import httpx
from hypothesis.stateful import initialize, invariant

import tidings as td
from tests.oracle.topic import TopicOracle
from tests.topic.test_topic import FEW, SCHEMA, TopicMachine
from tidings.serve.run.server import listening, server_of
from tidings.serve.settings import Settings


class Host:
    """One service for all examples, each with a topic of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        sock = listening("127.0.0.1", 0)
        self.server = server_of(Settings(self.folder, open=True))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [sock]})
        self.thread.start()
        self.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        while httpx.get(f"{self.url}/readyz").status_code != 200:
            time.sleep(0.02)
        self.service = td.connect(self.url)

    def stop(self) -> None:
        self.service.close()
        self.server.should_exit = True
        self.thread.join()
        shutil.rmtree(self.folder)

    def hosted(self, name: str) -> td.Topic:
        """The topic itself, for the oracle's word weights alone."""
        app = self.server.config.app
        while not hasattr(app, "state"):
            app = app.app
        return app.state.service.topics[name].topic


class RemoteMachine(TopicMachine):
    host: Host

    @initialize()
    def start(self) -> None:
        self.name = uuid4().hex
        self.schema = td.Schema(SCHEMA)
        self.oracle = TopicOracle(self.schema)
        self.topic = self.host.service.make(self.name, SCHEMA, clock="given")
        self.oracle.weight = lambda word: self.host.hosted(self.name).store.similar.weight(word)

    def teardown(self) -> None:
        if hasattr(self, "name"):
            self.host.service.drop(self.name)

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "topic"):
            assert len(self.topic) == len(self.oracle.subscriptions)


class TestRemote(RemoteMachine.TestCase):
    settings = FEW

    @classmethod
    def setUpClass(cls) -> None:
        RemoteMachine.host = Host()

    @classmethod
    def tearDownClass(cls) -> None:
        RemoteMachine.host.stop()
