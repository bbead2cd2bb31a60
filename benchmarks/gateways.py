"""Gateways on a real broker: bytes beside Unicast in the same run, the painter's pace and memory, and how soon an SSE client hears.

    python -m benchmarks.gateways [--watchers 10000000] [--events 300] [--seconds 20] [--part all]

Objects and updates are those of [range-topk, section V]: 10,000 objects, uniform, k = 20, watchers uniform. Four processes read the
zones' partitions and keep the lists of simulated watchers, `--watchers` of them together, from the messages alone; at the end some
lists of each are judged by sorting the objects. Unicast is the paper's, on the same watchers and updates, 16 bytes a watcher told.
A part, `pace` or `streams`, can be run alone; its figures say of which run they are.

| figure                 | what it is                                                                                        |
|------------------------|---------------------------------------------------------------------------------------------------|
| from the painter       | bytes that librdkafka sent to the broker, protocol and objects included                             |
| through Kafka          | bytes of the segments of `messages`: what was stored, and sent to whoever has the zone               |
| to the gateways        | bytes that the four readers received                                                                |
| painter alone          | its processor time with nobody who reads, and with the watchers' sketch that gateways would give it     |
| update to SSE          | from the oldest update of a batch to its notification in a client's hands; 1,000 updates a second     |
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing as mp
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

import tidings as td
from experiments.baselines.unicast import MESSAGE_BYTES, unicast_updates
from experiments.range_topk_data import synthetic, watcher_points
from experiments.report import provenance
from tests.spark.kafka.broker import Broker
from tidings.boards.messages.family import Family
from tidings.boards.messages.objects import FamilyObjects
from tidings.boards.paint.zones import Zones
from tidings.index.points.watchers import WatchIndex
from tidings.kafka.layout import Plan, named
from tidings.kafka.painter import Painter
from tidings.kafka.records import consumer_of
from tidings.kafka.replica import Replica
from tidings.kafka.sketch import RECTANGLES
from tidings.serve.gateway.zone import Zone

RESULT = Path(__file__).parent / "results" / "gateways.json"
SCHEMA = td.Schema({"x": td.Number(), "y": td.Number()})
K, ZONES, READERS, BATCH = 20, 16, 4, 1000
FAMILY = Family("x", "-y", K)


class Sent:
    """What librdkafka says of itself."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def __call__(self, text: str) -> None:
        self.said = json.loads(text)


def watchers_of(seed: int, count: int) -> np.ndarray:
    return watcher_points(np.random.default_rng(100 + seed), count, "uniform")


def read(brokers: str, plan: Plan, reader: int, count: int, pipe: Any) -> None:
    """One gateway without its HTTP: every fourth zone, with those of `count` simulated watchers that are in them."""
    mine = list(range(reader, ZONES, READERS))
    replica, points = Replica(brokers, plan), watchers_of(0, count)
    sequence, owners = replica.advance(), plan.zones[0].owners(points)
    zones = {number: Zone(plan, number) for number in mine}
    own = {number: points[owners == number] for number in mine}
    del points, owners
    before = psutil.Process().memory_info().rss
    for number, zone in zones.items():
        zone.load(sequence, replica)
        for start in range(0, len(own[number]), 100_000):
            some = own[number][start : start + 100_000]
            ids = [f"{number}-{start + i}" for i in range(len(some))]
            zone.followers[0].begin(ids, some, [K] * len(ids), [False] * len(ids), replica.objects[0], sequence)
    sent = Sent()
    consumer = consumer_of(brokers, **{"statistics.interval.ms": 200, "stats_cb": sent})
    name = named(plan.topic, "messages")
    consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in mine])
    held = sum(map(len, zones.values()))
    nbytes = sum(zone.followers[0].nbytes for zone in zones.values())
    pipe.send({"watchers": held, "rss": psutil.Process().memory_info().rss - before, "bytes": nbytes})
    wanted, began = None, time.process_time()
    while True:
        record = consumer.poll(0.05)
        if record is not None and record.error() is None:
            zones[record.partition()].hear(record, 0.0)
        elif record is not None:
            zones[record.partition()].offset = record.offset()
        if pipe.poll():
            wanted = pipe.recv()
            if wanted is None:
                return
        if wanted is not None and all(zones[number].offset >= wanted[number] for number in mine):
            for _ in range(10):
                consumer.poll(0.05)
            heard = sum(zone.followers[0].deliveries for zone in zones.values())
            judged = judge(zones, replica)
            received = sent.said.get("rx_bytes", 0)
            pipe.send({"heard": heard, "received": received, "seconds": time.process_time() - began, "judged": judged})
            wanted = None


def judge(zones: dict[int, Zone], replica: Replica) -> int:
    """Some lists of every zone, by sorting all objects."""
    replica.advance()
    objects: FamilyObjects = replica.objects[0]
    a = objects.index.arrays
    there = np.flatnonzero(a.block_of >= 0)
    order = there[np.lexsort((a.tie[there], a.y[there]))]
    judged = 0
    for zone in zones.values():
        followers = zone.followers[0]
        for id in list(followers.row)[:: max(len(followers) // 50, 1)]:
            l, r = followers.point(id)
            best = order[(a.x[order] >= l) & (a.x[order] <= r)][:K]
            expected = [(objects.keys.key[number], 0.0 - a.y[number]) for number in best]
            assert followers.top(id) == expected, f"the list of {id} is not the oracle's"
            judged += 1
    return judged


def ends(brokers: str, plan: Plan) -> dict[int, int]:
    consumer = consumer_of(brokers)
    name = named(plan.topic, "messages")
    found = {zone: consumer.get_watermark_offsets(TopicPartition(name, zone), timeout=30)[1] for zone in range(ZONES)}
    consumer.close()
    return found


def stored(folder: Path, topic: str) -> int:
    return sum(path.stat().st_size for place in folder.glob(f"log/{named(topic, 'messages')}-*") for path in place.glob("*.log"))


def painted(broker: Broker, workload: Any, watchers: int, events: int) -> dict[str, Any]:
    """Bytes of single events and of batches, and the painter's pace."""
    sample = watchers_of(0, 20_000)
    topic = "flats"
    plan = Plan(topic, SCHEMA, "flat", (FAMILY,), (Zones.balanced(sample, ZONES),))
    sent = Sent()
    painter = Painter(broker.address, plan, statistics=sent)
    values = [{"x": float(x), "y": float(y)} for x, y in zip(workload.x, workload.y, strict=True)]
    painter.publish({f"f{i}": value for i, value in enumerate(values)}, 0)
    context = mp.get_context("spawn")
    pipes, processes = [], []
    for reader in range(READERS):
        here, there = context.Pipe()
        processes.append(context.Process(target=read, args=(broker.address, plan, reader, watchers, there), daemon=True))
        processes[-1].start()
        pipes.append(here)
    began = [pipe.recv() for pipe in pipes]
    print(f"{sum(b['watchers'] for b in began)} watchers have their lists", flush=True)
    report: dict[str, Any] = {"watchers": sum(b["watchers"] for b in began), "asked for": watchers}
    report["bytes a watcher"] = round(sum(b["bytes"] for b in began) / report["watchers"])
    report["resident bytes a watcher, ids and all"] = round(sum(b["rss"] for b in began) / report["watchers"])
    numbers, x, y = workload.updates
    rss = psutil.Process().memory_info().rss

    def step(name: str, first: int, count: int, size: int) -> None:
        settle(painter, sent)
        before, on_disk = sent.said["tx_bytes"], stored(broker.folder, topic)
        heard = ask(pipes, ends(broker.address, plan))
        clock, cpu, messages = time.perf_counter(), time.process_time(), 0
        for start in range(first, first + count, size):
            rows = range(start, min(start + size, first + count))
            messages += painter.publish({f"f{numbers[i]}": {"x": float(x[i]), "y": float(y[i])} for i in rows}, 0)
        took, spent = time.perf_counter() - clock, time.process_time() - cpu
        settle(painter, sent)
        after = ask(pipes, ends(broker.address, plan))
        report[name] = {
            "updates": count,
            "messages an update": messages / count,
            "bytes from the painter an update": (sent.said["tx_bytes"] - before) / count,
            "bytes through Kafka an update": (stored(broker.folder, topic) - on_disk) / count,
            "bytes to the gateways an update": (after["received"] - heard["received"]) / count,
            "deliveries an update": (after["heard"] - heard["heard"]) / count,
            "updates a second": count / took,
            "updates a second of processor": count / spent,
            "gateways' seconds of processor": after["seconds"] - heard["seconds"],
            "lists judged": after["judged"],
        }
        print(name, json.dumps(report[name]), flush=True)

    step("single updates", 0, events, 1)
    step("batches of 1000", events, len(numbers) - events, BATCH)
    report["painter's resident bytes"] = {"before": rss, "after": psutil.Process().memory_info().rss}
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    painter.close()
    return report


def paced(broker: Broker, workload: Any, watchers: int, batches: int) -> dict[str, Any]:
    """The painter alone, in batches: updates a second of its processor time, its threads and Kafka's client included."""
    points = watchers_of(0, watchers)
    zones = Zones.balanced(points[:20_000], ZONES)
    owners, numbers, x, y = zones.owners(points), *workload.updates
    parts = (points[owners == zone] for zone in range(len(zones)))
    sketch = np.concatenate([WatchIndex.build(np.arange(len(p), dtype=np.int32), p).sketch(RECTANGLES).cover() for p in parts])
    found: dict[str, Any] = {"watchers": watchers, "rectangles of the sketch": len(sketch)}
    for name, boxes in (("Paint-Batch", None), ("Paint-Batch for the sketch", sketch)):
        topic = f"pace{len(found)}"
        painter = Painter(broker.address, Plan(topic, SCHEMA, "flat", (FAMILY,), (zones,)))
        painter.publish({f"f{i}": {"x": float(x), "y": float(workload.y[i])} for i, x in enumerate(workload.x)}, 0)
        painter.painters[0].cover(boxes)
        spent, began, messages = [], time.perf_counter(), 0
        for start in range(0, len(numbers), BATCH):
            flats = {f"f{numbers[i]}": {"x": float(x[i]), "y": float(y[i])} for i in range(start, start + BATCH)}
            cpu = time.process_time()
            messages += painter.publish(flats, 0)
            spent.append(time.process_time() - cpu)
        took = time.perf_counter() - began
        painter.close()
        spent = spent[-batches:]  # those before are for kernels to be compiled in
        found[name] = {
            "batches": batches,
            "messages an update": messages / len(numbers),
            "updates a second of processor": BATCH * batches / sum(spent),
            "of the slowest and the fastest batch": [BATCH / max(spent), BATCH / min(spent)],
            "updates a second": len(numbers) / took,
        }
    return found


def settle(painter: Painter, sent: Sent) -> None:
    """Until librdkafka has said what it sent, which it does when it is asked for anything."""
    for _ in range(15):
        painter.flush()
        time.sleep(0.1)
    assert sent.said


def ask(pipes: list[Any], wanted: dict[int, int]) -> dict[str, float]:
    for pipe in pipes:
        pipe.send(wanted)
    answers = [pipe.recv() for pipe in pipes]
    return {name: sum(answer[name] for answer in answers) for name in answers[0]}


def unicast(workload: Any, watchers: int, events: int) -> dict[str, Any]:
    """The paper's Unicast on the same watchers and updates."""
    points = watchers_of(0, watchers)
    index = WatchIndex.build(np.arange(len(points), dtype=np.int32), points)
    numbers, x, y = (column[:events] for column in workload.updates)
    affected, _, _ = unicast_updates(workload.objects().arrays, index.arrays, points, K, numbers, x, y)
    return {"watchers told an update": float(affected.mean()), "bytes an update": float(affected.mean()) * MESSAGE_BYTES}


async def listened(urls: list[str], cursors: dict[str, int], seconds: float, pipe: Any) -> list[float]:
    """Milliseconds from the oldest update of a batch to the client, for every notification; streams are open before the first."""
    delays: list[float] = []
    opened = asyncio.Semaphore(0)

    async def listen(client: httpx.AsyncClient, id: str, cursor: int) -> None:
        url = f"{urls[hash(id) % len(urls)]}/watchers/{id}/stream"
        async with client.stream("GET", url, headers={"last-event-id": str(cursor)}) as response:
            opened.release()
            async for line in response.aiter_lines():
                if line.startswith("data: ") and '"at"' in line:
                    now = time.time()
                    delays.append((now - datetime.fromisoformat(json.loads(line[6:])["at"]).timestamp()) * 1000)

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=None, follow_redirects=True, limits=limits) as client:
        tasks = [asyncio.create_task(listen(client, id, cursor)) for id, cursor in cursors.items()]
        for _ in tasks:
            await opened.acquire()
        pipe.send("go")
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return delays


def publish_steadily(brokers: str, plan: Plan, seconds: float, pipe: Any) -> None:
    """1,000 updates a second by the clock; what waits is painted together, dated by the oldest of it."""
    painter, draw = Painter(brokers, plan), np.random.default_rng(9)
    painter.publish({f"f{i}": {"x": draw.random(), "y": draw.random()} for i in range(10_000)}, 0)
    for count in (1, 2, 20, 50, 1, 100, 1, 1, 10, 30):
        painter.publish({f"f{draw.integers(10_000)}": {"x": draw.random(), "y": draw.random()} for _ in range(count)}, 0)
    pipe.send("ready")
    pipe.recv()
    began, done, sequences = time.time(), 0, 0
    while time.time() - began < seconds:
        due = int((time.time() - began) * 1000)
        if due > done:
            oldest = began + (done + 1) / 1000
            flats = {f"f{draw.integers(10_000)}": {"x": draw.random(), "y": draw.random()} for _ in range(due - done)}
            painter.publish(flats, int(oldest * 1e6))
            done, sequences = due, sequences + 1
        else:
            time.sleep(0.0005)
    pipe.send({"updates": done, "sequences": sequences, "seconds": time.time() - began})
    painter.close()


def started(brokers: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tidings", "gateway", "--topic", "rooms", "--brokers", brokers, "--port", "0", "--open"]
    return subprocess.Popen([*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True)


def begun(client: httpx.Client, url: str, id: str, l: float, r: float) -> int:
    """The number after which it hears; a gateway that is not ready yet is asked again."""
    said = {"filter": f"x BETWEEN {l} AND {r}", "by": "-y", "k": K}
    while True:
        answer = client.put(f"{url}/watchers/{id}", json=said)
        if answer.status_code < 300:
            return int(answer.json()["cursor"])
        assert answer.status_code == 503, answer.text
        time.sleep(0.2)


def heard(broker: Broker, folder: Path, seconds: float, streams: int = 100, gateways: int = 2) -> dict[str, Any]:
    """Real gateways, real streams."""
    plan = Plan("rooms", SCHEMA, "flat", (FAMILY,), (Zones.balanced(watchers_of(0, 20_000), 4),))
    context = mp.get_context("spawn")
    pipe, there = context.Pipe()
    publisher = context.Process(target=publish_steadily, args=(broker.address, plan, seconds, there), daemon=True)
    publisher.start()
    pipe.recv()
    processes = [started(broker.address, folder / f"g{number}") for number in range(gateways)]
    try:
        urls = [process.stdout.readline().rsplit(" on ", 1)[1].strip() for process in processes if process.stdout is not None]
        with httpx.Client(timeout=30, follow_redirects=True) as client:
            points = watchers_of(7, streams).tolist()
            cursors = {f"w{i}": begun(client, urls[i % gateways], f"w{i}", l, r) for i, (l, r) in enumerate(points)}
        print(f"{streams} watchers have begun", flush=True)
        delays = asyncio.run(listened(urls, cursors, seconds + 3, pipe))
        told = pipe.recv()
        publisher.join()
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    found = np.array(delays)
    return told | {
        "streams": streams,
        "gateways": gateways,
        "notifications": len(found),
        "ms p50": float(np.percentile(found, 50)),
        "ms p99": float(np.percentile(found, 99)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateways")
    parser.add_argument("--watchers", type=int, default=10_000_000)
    parser.add_argument("--events", type=int, default=300)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--part", choices=("all", "pace", "streams"), default="all")
    said = parser.parse_args()
    workload = synthetic(1, said.events + said.batches * BATCH)
    folder = Path(tempfile.mkdtemp())
    broker = Broker(folder)
    report: dict[str, Any] = {"run": provenance()} if said.part == "all" else json.loads(RESULT.read_text())
    try:
        if said.part in ("all", "streams"):
            report["update to SSE"] = heard(broker, folder, said.seconds) | {"run": provenance()}
            kept(report)
        if said.part in ("all", "pace"):
            batches = synthetic(1, 2 * said.batches * BATCH)
            report["painter alone"] = paced(broker, batches, said.watchers, said.batches) | {"run": provenance()}
            kept(report)
        if said.part != "all":
            return
        report["Unicast"] = unicast(workload, said.watchers, said.events)
        report |= painted(broker, workload, said.watchers, said.events)
        for name in ("from the painter", "through Kafka", "to the gateways"):
            ours = report["single updates"][f"bytes {name} an update"]
            report[f"Unicast over bytes {name}"] = report["Unicast"]["bytes an update"] / ours
        kept(report)
    finally:
        broker.stop()
        shutil.rmtree(folder)


def kept(report: dict[str, Any]) -> None:
    print(json.dumps(report, indent=1), flush=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
