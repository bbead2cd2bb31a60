"""What the service says of itself: a log line and a measure for every request, and the numbers of `/metrics`.

Every request has an id, its own or the one it came with (`X-Request-ID`), which its answer, its problem and its log lines carry.
Logs are JSON, a line each. An ASGI layer of its own rather than a middleware of the framework: streams pass through untouched, and
it costs a few microseconds.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidings.serve.service import Service

log = logging.getLogger("tidings.serve")
ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
QUIET = ("/healthz", "/readyz", "/metrics")


class Watching:
    """The layer around an app. Its measures are of this app alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.registry = CollectorRegistry()
        self._requests = Counter("tidings_requests", "Requests by route and status.", ["route", "status"], registry=self.registry)
        self._counters: dict[tuple[str, int], Counter] = {}
        self._seconds = Histogram("tidings_request_seconds", "Time until an answer began.", buckets=BUCKETS, registry=self.registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        came = next((value for name, value in scope["headers"] if name == b"x-request-id" and ID.fullmatch(value)), None)
        id = scope["request_id"] = os.urandom(16).hex() if came is None else came.decode()
        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", id.encode())]
                self._seconds.observe(time.perf_counter() - began)
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self._counter(route, status).inc()
            if scope["path"] not in QUIET and log.isEnabledFor(logging.INFO):
                took = round((time.perf_counter() - began) * 1000, 3)
                said = {"request": id, "method": scope["method"], "path": scope["path"], "status": status, "ms": took}
                log.info("request", extra=said)

    def _counter(self, route: str, status: int) -> Counter:
        found = self._counters.get((route, status))
        if found is None:
            found = self._counters[route, status] = self._requests.labels(route, str(status))
        return found

    def exposed(self) -> bytes:
        return generate_latest(self.registry)


class OfService(Collector):
    """Numbers of topics, streams and sinks, read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        service = self._service
        topics = list(service.topics.items())
        yield _gauge("tidings_subscriptions", "Subscriptions.", [((name,), len(t.topic)) for name, t in topics])
        yield _gauge("tidings_waiting_writes", "Requests that wait for the writer.", [((n,), t.writer.depth) for n, t in topics])
        yield _gauge("tidings_waiting_reads", "Requests that wait for readers.", [((n,), t.readers.depth) for n, t in topics])
        yield _count("tidings_commits", "Commits of publishes.", [((name,), t.writing.groups) for name, t in topics])
        yield _count("tidings_publishes", "Publish requests that shared them.", [((n,), t.writing.grouped) for n, t in topics])
        tails = list(service.tails.items())
        yield _gauge("tidings_listeners", "Streams and sinks that listen.", [((name,), tail.listening) for name, tail in tails])
        yield _count("tidings_notifications", "Notifications ever told.", [((name,), tail.at) for name, tail in tails])
        sinks = list(service.couriers.known.items())
        running = service.couriers.running
        behind = [(at, running[at].behind) for at, _ in sinks if at in running]
        yield _gauge("tidings_sink_behind", "Numbers that lie before a sink.", behind, "sink")
        yield _count("tidings_sink_delivered", "Notes that a sink took.", [(at, sink.delivered) for at, sink in sinks], "sink")
        yield _count("tidings_sink_lost", "Numbers gone before a sink came to them.", [(at, s.lost) for at, s in sinks], "sink")


def _gauge(name: str, said: str, rows: Sequence[tuple[tuple[str, ...], float]], *more: str) -> Metric:
    return _filled(GaugeMetricFamily(name, said, labels=["topic", *more]), rows)


def _count(name: str, said: str, rows: Sequence[tuple[tuple[str, ...], float]], *more: str) -> Metric:
    return _filled(CounterMetricFamily(name, said, labels=["topic", *more]), rows)


def _filled(family: Any, rows: Sequence[tuple[tuple[str, ...], float]]) -> Metric:
    for labels, value in rows:
        family.add_metric(labels, value)
    made: Metric = family
    return made


class JsonLines(logging.Formatter):
    """A line of JSON a record: what was said beside it stands beside it."""

    OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "said": record.getMessage(),
        }
        said |= {name: value for name, value in vars(record).items() if name not in self.OWN}
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def log_to_stderr(level: str) -> None:
    """What a process of the service does with its logs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    log.setLevel(level.upper())
