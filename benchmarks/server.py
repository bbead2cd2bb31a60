"""The service under load from a second process on loopback: rates by the clock, and by processor time of the server.

Both sides of a ratio are measured in one run, on the same subscriptions and events. `told` is how many notifications an event has.

    python -m benchmarks.server [--subscriptions 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pyarrow as pa

import tidings as td
from experiments.report import provenance
from tidings.serve.app.answers import ARROW, NDJSON, stream_bytes

RESULT = Path(__file__).parent / "results" / "server.json"
SCHEMA = {"price": td.Number(0, 1_000_000), "brand": td.Category()}
BATCH, BATCHES = 1000, 20
CONNECTIONS, SINGLES, MATCHES, STREAMS, HOOKS, HEARD = 32, 6000, 10_000, 10_000, 4000, 3000


def subscriptions(n: int) -> pa.Table:
    low = np.random.default_rng(3).uniform(0, 1_000_000, n)
    return pa.table({"id": [f"s{i:07}" for i in range(n)], "price.lo": low, "price.hi": low + 1_000_000 / n, "score": [1.0] * n})


def events(prefix: str, n: int) -> list[dict[str, Any]]:
    """Each is told to about one subscription, however many there are."""
    prices = np.random.default_rng(5).uniform(0, 1_000_000, n).tolist()
    return [{"id": f"{prefix}{i}", "price": price, "brand": "x"} for i, price in enumerate(prices)]


def embedded(folder: Path, table: pa.Table) -> dict[str, Any]:
    with td.open(folder, "deals", SCHEMA) as topic:
        topic.subscribe_many(table)
        topic.publish_batch(events("warm", BATCH))
        batches = [events(f"b{number}-", BATCH) for number in range(BATCHES)]
        began, clock = time.process_time(), time.perf_counter()
        told = sum(len(topic.publish_batch(batch)) for batch in batches)
        spent, took = time.process_time() - began, time.perf_counter() - clock
    count = BATCH * BATCHES
    return {"events a second": count / took, "us of processor an event": spent / count * 1e6, "told": told / count}


class Served:
    """A service in a process of its own, measured."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tidings", "serve", str(folder), "--open", "--port", "0", "--log", "error"]
        self.process = subprocess.Popen([*command, "--allow", "127.0.0.1"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = next(line.split()[-4] for line in self.process.stdout if "http://" in line)
        self.client = httpx.Client(base_url=self.url, timeout=600)
        self.ps = psutil.Process(self.process.pid)
        while self.client.get("/readyz").status_code != 200:
            time.sleep(0.1)

    def cpu(self) -> float:
        times = self.ps.cpu_times()
        return float(times.user + times.system)

    def load(self, what: str, **said: Any) -> dict[str, Any]:
        """Let a second process make the load; its findings, and the server's processor time an act."""
        before = self.cpu()
        command = [sys.executable, "-m", "benchmarks.server", "--load", json.dumps({"what": what, "url": self.url, **said})]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        spent = self.cpu() - before
        return found | {"us of processor": spent / found["count"] * 1e6, "a second of processor": found["count"] / spent}

    def stop(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(120)


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, body: bytes) -> bytes:
    writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
    content = await reader.readexactly(length)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"refused: {content.decode()}")
    return content


def head_of(path: str, form: str = "application/json") -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {form}\r\n".encode()


async def singles(said: dict[str, Any]) -> dict[str, Any]:
    """Single requests over CONNECTIONS connections, each as soon as its last is answered."""
    host, port = said["url"].removeprefix("http://").split(":")
    bodies = [json.dumps(event).encode() for event in events(said["prefix"], said["count"])]
    waits: list[float] = []

    async def one(mine: list[bytes]) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for body in mine:
            began = time.perf_counter()
            await request(reader, writer, head_of(said["path"]), body)
            waits.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(one(bodies[first::CONNECTIONS]) for first in range(CONNECTIONS)))
    took = time.perf_counter() - began
    return {"count": len(bodies), "a second": len(bodies) / took, "p99 ms": float(np.percentile(waits, 99)) * 1e3}


async def batches(said: dict[str, Any]) -> dict[str, Any]:
    host, port = said["url"].removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**24)
    lines = [b"\n".join(json.dumps(e).encode() for e in events(f"n{number}-", BATCH)) for number in range(BATCHES)]
    began = time.perf_counter()
    for body in lines:
        await request(reader, writer, head_of(said["path"], NDJSON), body)
    count = BATCH * BATCHES
    return {"count": count, "a second": count / (time.perf_counter() - began)}


async def heard(said: dict[str, Any]) -> dict[str, Any]:
    """From the beginning of a publish to its notification on a stream of all, at `rate` events a second over CONNECTIONS."""
    host, port = said["url"].removeprefix("http://").split(":")
    stream, asks = await asyncio.open_connection(host, int(port), limit=2**22)
    asks.write(b"GET /topics/deals/notifications HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n")
    await stream.readuntil(b"\n\n")
    sent: dict[str, float] = {}
    waits: list[float] = []

    async def hear() -> None:
        while len(waits) < said["count"] * 0.9:
            line = await stream.readline()
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])["event"]["id"]
                if event in sent:
                    waits.append(time.perf_counter() - sent.pop(event))

    every = events("h", said["count"] * 3)
    began = time.perf_counter()

    async def tell(first: int) -> None:
        """Each at its own instant, whether or not the one before was answered in time."""
        reader, writer = await asyncio.open_connection(host, int(port))
        for number in range(first, len(every), CONNECTIONS):
            if hearing.done():
                break
            await asyncio.sleep(max(0.0, began + number / said["rate"] - time.perf_counter()))
            sent[every[number]["id"]] = time.perf_counter()
            await request(reader, writer, head_of("/topics/deals/events"), json.dumps(every[number]).encode())
        writer.close()

    hearing = asyncio.create_task(hear())
    telling = asyncio.gather(*(tell(first) for first in range(CONNECTIONS)))
    await asyncio.wait_for(hearing, 300)
    await telling
    asks.close()
    percentiles = {f"p{part} ms": float(np.percentile(waits, part)) * 1e3 for part in (50, 99)}
    return {"count": len(waits), "a second": said["rate"], **percentiles}


async def streams(said: dict[str, Any]) -> dict[str, Any]:
    """Open streams, and the memory of the server with and without them."""
    host, port = said["url"].removeprefix("http://").split(":")
    server = psutil.Process(said["pid"])
    before, opened = server.memory_info().rss, []
    for number in range(said["count"]):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /topics/deals/notifications?subscription=s%07d HTTP/1.1\r\nhost: x\r\n" % number)
        writer.write(b"accept: text/event-stream\r\n\r\n")
        await reader.readuntil(b"id: ")
        opened.append(writer)
    grown = server.memory_info().rss - before
    for writer in opened:
        writer.close()
    return {"count": said["count"], "bytes a stream": grown / said["count"], "bytes of the server": before + grown}


async def hooks(said: dict[str, Any]) -> dict[str, Any]:
    """A receiver in this process; from the first message to the last."""
    times: list[float] = []
    done = asyncio.Event()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                times.append(time.perf_counter())
                if len(times) >= said["count"]:
                    done.set()
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=said["url"], timeout=600) as client:
        target = {"kind": "webhook", "url": f"http://127.0.0.1:{port}/"}
        (await client.put("/topics/deals/sinks/bench", json=target)).raise_for_status()
        lines = b"\n".join(json.dumps(event).encode() for event in events("w", said["count"] * 2))
        await client.post("/topics/deals/events", content=lines, headers={"content-type": NDJSON})
        await asyncio.wait_for(done.wait(), 300)
        await client.delete("/topics/deals/sinks/bench")
    server.close()
    return {"count": len(times), "a second": (len(times) - 1) / (times[-1] - times[0])}


LOADS = {"singles": singles, "batches": batches, "heard": heard, "streams": streams, "hooks": hooks}


def measure(n: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    try:
        table = subscriptions(n)
        rows: dict[str, Any] = {"embedded, batches of 1,000": embedded(folder / "embedded", table)}
        served = Served(folder / "data")
        try:
            served.client.put("/topics/deals", json={"schema": td.Schema(SCHEMA).to_dict()}).raise_for_status()
            for first in range(0, n, 250_000):
                part = stream_bytes(table.slice(first, 250_000))
                served.client.post("/topics/deals/subscriptions", content=part, headers={"content-type": ARROW}).raise_for_status()
            publish = "/topics/deals/events"
            served.load("singles", path=publish, prefix="warm", count=500)
            served.load("singles", path="/topics/deals/match", prefix="warm", count=500)
            rows["NDJSON, batches of 1,000"] = served.load("batches", path=publish)
            rows["single events, 32 connections"] = served.load("singles", path=publish, prefix="e", count=SINGLES)
            rows["match of single events"] = served.load("singles", path="/topics/deals/match", prefix="m", count=MATCHES)
            half = rows["single events, 32 connections"]["a second"] / 2
            rows["publish to stream, at half load"] = served.load("heard", rate=half, count=HEARD)
            rows["streams"] = served.load("streams", pid=served.process.pid, count=STREAMS)
            rows["webhooks"] = served.load("hooks", count=HOOKS)
        finally:
            served.stop()
    finally:
        shutil.rmtree(folder)
    own, far = rows["embedded, batches of 1,000"], rows["NDJSON, batches of 1,000"]
    rows["NDJSON, batches of 1,000"]["of the embedded rate, by processor"] = (
        own["us of processor an event"] / far["us of processor"]
    )
    rows["NDJSON, batches of 1,000"]["of the embedded rate, by the clock"] = far["a second"] / own["events a second"]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--load")
    said = parser.parse_args()
    if said.load is not None:
        asked = json.loads(said.load)
        print(json.dumps(asyncio.run(LOADS[asked["what"]](asked))))
        return
    rows = measure(said.subscriptions)
    load = os.getloadavg()[0]
    said.result.write_text(
        json.dumps({**provenance(), "subscriptions": said.subscriptions, "load average": load, "rows": rows}, indent=1) + "\n"
    )
    for name, row in rows.items():
        print(f"{name:32}", ", ".join(f"{what} {value:,.4g}" for what, value in row.items()))


if __name__ == "__main__":
    main()
