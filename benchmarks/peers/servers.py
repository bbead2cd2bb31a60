"""Peers that are servers: started on loopback in a folder of their own, stopped by their process, and timed by its CPU time."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.peers.golang import installed
from benchmarks.peers.libraries import scores
from benchmarks.peers.peer import Answers, Measured, Task, Unavailable

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 60.0


class PostgreSQL:
    """Boxes in a GiST index, words in a GIN index of arrays; a query an event, and a lateral join for a batch."""

    name = "PostgreSQL"

    def __init__(self) -> None:
        self.version = ""

    def measure(self, task: Task) -> Measured:
        with tempfile.TemporaryDirectory() as folder, postgres(Path(folder)) as address, psycopg.connect(address) as database:
            self.version = database.execute("SHOW server_version").fetchone()[0].split()[0]  # type: ignore[index]
            self._load(database, task)
            database.prepare_threshold = 0
            backend = database.execute("SELECT pg_backend_pid()").fetchone()[0]  # type: ignore[index]
            events, words = task.events(), "about" in task.workload.schema
            where = "box @> point(%(x)s, %(y)s)" + (" AND words <@ %(words)s::text[]" if words else "")
            order = f"ORDER BY score DESC LIMIT {task.k}" if task.k else ""
            query = f"SELECT row FROM subscriptions WHERE {where} {order}"
            asked = [{"x": e["place"][0], "y": e["place"][1], "words": e.get("about", [])} for e in events]

            def single() -> Answers:
                found = [[row for (row,) in database.execute(query, event).fetchall()] for event in asked]
                return found if task.k else [sorted(rows) for rows in found]

            database.execute("CREATE TEMP TABLE events (x float8, y float8, words text[])")
            with database.cursor().copy("COPY events FROM STDIN") as copy:
                for event in asked:
                    copy.write_row((event["x"], event["y"], event["words"]))
            lateral = query.replace("%(x)s", "e.x").replace("%(y)s", "e.y").replace("%(words)s", "e.words")
            join = f"SELECT count(*) FROM events e, LATERAL ({lateral}) found"
            answers = single()
            batch = spent(backend, lambda: database.execute(join).fetchall())
            return Measured(answers, batch / len(events), spent(backend, single) / len(events))

    def _load(self, database: psycopg.Connection[Any], task: Task) -> None:
        table = task.workload.subscriptions
        wanted = table["about.all"].to_pylist() if "about.all" in table.column_names else [[]] * len(table)
        database.execute("CREATE TABLE subscriptions (row int, box box, words text[], score float8)")
        with database.cursor().copy("COPY subscriptions FROM STDIN") as copy:
            for row, ((x0, y0, x1, y1), words, score) in enumerate(
                zip(task.corners().tolist(), wanted, scores(task).tolist(), strict=True)
            ):
                copy.write_row((row, f"({x0},{y0}),({x1},{y1})", words, score))
        database.execute("CREATE INDEX ON subscriptions USING gist (box)")
        database.execute("CREATE INDEX ON subscriptions USING gin (words)")
        database.execute("CREATE INDEX ON subscriptions (score)")
        database.execute("ANALYZE subscriptions")


class Tile38:
    """A channel with a fence for each box; points are set, and what the channels tell is read from a second connection."""

    name = "Tile38"

    def __init__(self) -> None:
        self.version = ""

    def measure(self, task: Task) -> Measured:
        program = installed("github.com/tidwall/tile38/cmd/tile38-server@v1.34.4", "tile38-server")
        with tempfile.TemporaryDirectory() as folder, tile38(program, Path(folder)) as (port, pid):
            sender, hearer = Connection(port), Connection(port)
            self.version = str(sender.ask("SERVER")[sender.ask("SERVER").index("version") + 1])
            fences = [
                ("SETCHAN", f"c{row}", "WITHIN", "events", "FENCE", "DETECT", "enter", "BOUNDS", *map(repr, (y0, x0, y1, x1)))
                for row, (x0, y0, x1, y1) in enumerate(task.corners().tolist())
            ]
            for first in range(0, len(fences), 1000):
                sender.ask_all(fences[first : first + 1000])
            hearer.ask("PSUBSCRIBE", "*")
            events, rounds = task.events(), iter(range(100))
            answers: Answers = [[] for _ in events]

            def published(together: int) -> None:
                """Set new points, some together, and hear all that is told of them, up to a word of our own."""
                name = f"r{next(rounds)}"
                points = [
                    ("SET", "events", f"{name}-{number}", "POINT", *map(repr, reversed(event["place"])))
                    for number, event in enumerate(events)
                ]
                for first in range(0, len(points), together):
                    sender.ask_all(points[first : first + together])
                sender.ask("PUBLISH", "done", name)
                for rows in answers:
                    rows.clear()
                while (message := hearer.heard())[2] != "done" or message[3] != name:
                    said = json.loads(message[3])
                    answers[int(said["id"].rpartition("-")[2])].append(int(said["hook"][1:]))

            batch = spent(pid, lambda: published(len(events))) / len(events)
            single = spent(pid, lambda: published(1)) / len(events)
            return Measured([sorted(rows) for rows in answers], batch, single)


class Redis:
    """Fan-out alone, since channels are names: a connection for each hearer of a room, and a message for everyone who hears it."""

    name = "Redis"

    def __init__(self) -> None:
        self.version = ""

    def measure(self, task: Task) -> Measured:
        rooms = task.workload.subscriptions["room.in"].combine_chunks().flatten().to_pylist()
        hearers = rooms.count(rooms[0])
        with redis() as (port, pid):
            sender, ears = Connection(port), [Connection(port) for _ in range(hearers)]
            self.version = next(line for line in sender.ask("INFO", "server").splitlines() if "redis_version" in line).split(":")[1]
            for place, ear in enumerate(ears):
                ear.ask_all([("SUBSCRIBE", room) for room in rooms[place::hearers]])
            events = task.events()
            answers: Answers = []

            def published(together: int) -> None:
                """Say the events, some together, and hear all that is told of them."""
                messages = [("PUBLISH", event["room"], event["id"]) for event in events]
                for first in range(0, len(messages), together):
                    counts = sender.ask_all(messages[first : first + together])
                    heard = [[ear.heard() for _ in counts] for ear in ears]
                    answers.extend(
                        sorted(place + hearers * int(said[number][1][1:]) for place, said in enumerate(heard))
                        for number in range(len(counts))
                    )

            batch = spent(pid, lambda: published(len(events))) / len(events)
            single = spent(pid, lambda: published(1)) / len(events)
            return Measured(answers[: len(events)], batch, single)


class Connection:
    """A connection that speaks RESP."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._replies = self._socket.makefile("rb")

    def ask(self, *words: str) -> Any:
        return self.ask_all([words])[0]

    def ask_all(self, commands: Sequence[tuple[str, ...]]) -> list[Any]:
        parts = (f"*{len(words)}\r\n" + "".join(f"${len(w.encode())}\r\n{w}\r\n" for w in words) for words in commands)
        self._socket.sendall("".join(parts).encode())
        return [self.heard() for _ in commands]

    def heard(self) -> Any:
        line = self._replies.readline()
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-":
            raise RuntimeError(rest)
        if kind == b"$":
            return self._replies.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.heard() for _ in range(int(rest))]
        return rest


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").exists() else []
    if not tools:
        raise Unavailable("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder.chmod(0o755)
    data, port = folder / "data", free_port()
    data.mkdir()
    other: list[str] = []
    if os.geteuid() == 0:
        # It refuses to run as root.
        shutil.chown(data, "postgres")
        other = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    subprocess.run([*other, str(tools[-1] / "initdb"), "-D", str(data), "-U", "me", "-A", "trust"], check=True, capture_output=True)
    options = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", "", "-c", "fsync=off", "-c", "jit=off"]
    options += ["-c", "shared_buffers=1GB", "-c", "max_parallel_workers_per_gather=0", "-c", "maintenance_work_mem=512MB"]
    address = f"host=127.0.0.1 port={port} user=me dbname=postgres"
    with running(
        [*other, str(tools[-1] / "postgres"), *options], lambda: psycopg.connect(address).close(), psycopg.OperationalError
    ):
        yield address


@contextmanager
def tile38(program: Path, folder: Path) -> Iterator[tuple[int, int]]:
    port = free_port()
    command = [str(program), "-p", str(port), "-h", "127.0.0.1", "-d", str(folder), "-q"]
    with running(command, lambda: Connection(port).ask("PING"), OSError) as pid:
        yield port, pid


@contextmanager
def redis() -> Iterator[tuple[int, int]]:
    program, port = shutil.which("redis-server"), free_port()
    if program is None:
        raise Unavailable("Redis is not installed (Debian: apt-get install redis-server)")
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with running(command, lambda: Connection(port).ask("PING"), OSError) as pid:
        yield port, pid


@contextmanager
def running(command: list[str], answers: Callable[[], Any], refused: type[Exception]) -> Iterator[int]:
    """The process, once it answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                answers()
                break
            except refused as error:
                if process.poll() is not None or time.monotonic() > until:
                    raise Unavailable(f"'{Path(command[0]).name}' does not start") from error
                time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def spent(pid: int, act: Callable[[], Any], repeats: int = 3) -> float:
    """CPU seconds of a process while `act` runs here, the least of several."""
    times = []
    for _ in range(repeats):
        start = clock(pid)
        act()
        times.append(clock(pid) - start)
    return min(times)


def clock(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
