"""How notes are sent, one class a kind. `send` makes one attempt and says what became of it; it never raises."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson
from standardwebhooks import Webhook

from tidings.serve.delivery.addresses import Addresses
from tidings.serve.delivery.connections import Connections
from tidings.serve.delivery.outcomes import LATER, TAKEN, Outcome, of_status
from tidings.serve.delivery.sinks import Sink
from tidings.serve.hearing.notes import Note

TIMEOUT = 20.0
NOTIFICATION, NOTIFICATIONS = "tidings.notification", "tidings.notifications"
LONGEST_PAYLOAD = 7900
"""Bytes that PostgreSQL takes, less some."""


class Sender(Protocol):
    async def send(self, notes: Sequence[Note]) -> Outcome: ...

    async def close(self) -> None: ...


class Http:
    """Messages of all sinks over HTTP: to addresses that may be called, each answered within its time."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._connections = Connections(Addresses(allowed))

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> Outcome:
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._connections.post(url, headers, body)
        except TimeoutError:
            return Outcome(LATER, f"no answer within {TIMEOUT:g} seconds")
        except OSError as error:
            return Outcome(LATER, f"cannot be called: {error or type(error).__name__}")
        return of_status(answer.status, answer.retry_after)

    async def close(self) -> None:
        await self._connections.close()


class Webhooks:
    """After Standard Webhooks: id, time and signatures in headers, one signature for each secret that is valid."""

    def __init__(self, http: Http, sink: Sink) -> None:
        self._http, self._sink = http, sink

    async def send(self, notes: Sequence[Note]) -> Outcome:
        single = len(notes) == 1 and self._sink.target.batch == 1
        now = datetime.now(UTC)
        data: Any = orjson.Fragment(notes[0].body) if single else [orjson.Fragment(note.body) for note in notes]
        body = orjson.dumps({"type": NOTIFICATION if single else NOTIFICATIONS, "timestamp": now.isoformat(), "data": data})
        id = message_id(notes)
        signatures = [Webhook(secret).sign(id, now, body.decode()) for secret in self._sink.signing()]
        headers = {
            **self._sink.target.headers,
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }
        return await self._http.post(self._sink.target.url, headers, body)

    async def close(self) -> None:
        """The connections are everybody's."""


def message_id(notes: Sequence[Note]) -> str:
    """Of one note its own; of many one that is the same when the same are sent again."""
    if len(notes) == 1:
        return notes[0].waiting.id
    return hashlib.blake2b("".join(note.waiting.id for note in notes).encode(), digest_size=16).hexdigest()


def cloud_event(note: Note) -> dict[str, Any]:
    w = note.waiting
    said: dict[str, Any] = {"specversion": "1.0", "id": w.id, "source": f"/topics/{note.topic}", "type": NOTIFICATION}
    return said | {
        "subject": w.subscription,
        "time": w.at,
        "datacontenttype": "application/json",
        "data": orjson.Fragment(note.body),
    }


class CloudEvents:
    """Structured events over HTTP, a batch where the sink wants batches."""

    def __init__(self, http: Http, sink: Sink) -> None:
        self._http, self._sink = http, sink

    async def send(self, notes: Sequence[Note]) -> Outcome:
        single = len(notes) == 1 and self._sink.target.batch == 1
        body = orjson.dumps(cloud_event(notes[0]) if single else [cloud_event(note) for note in notes])
        form = "application/cloudevents+json" if single else "application/cloudevents-batch+json"
        headers = {**self._sink.target.headers, "content-type": form}
        return await self._http.post(self._sink.target.url, headers, body)

    async def close(self) -> None:
        """The connections are everybody's."""


class Kafka:
    """Records in a Kafka topic, the subscription as key so that its order is kept; taken when all in-sync replicas have them."""

    def __init__(self, sink: Sink) -> None:
        from confluent_kafka import Producer

        self._topic = sink.target.topic
        settings = {"bootstrap.servers": sink.target.brokers, "acks": "all", "enable.idempotence": True, "linger.ms": 5}
        self._producer = Producer(settings | {"message.timeout.ms": int(TIMEOUT * 1000)})

    async def send(self, notes: Sequence[Note]) -> Outcome:
        return await asyncio.to_thread(self._send, notes)

    def _send(self, notes: Sequence[Note]) -> Outcome:
        from confluent_kafka import KafkaException

        problems: list[Any] = []
        try:
            for note in notes:
                w = note.waiting
                said = {"ce_specversion": "1.0", "ce_id": w.id, "ce_type": NOTIFICATION, "ce_source": f"/topics/{note.topic}"}
                self._producer.produce(
                    self._topic,
                    note.body,
                    w.subscription,
                    headers=list((said | {"content-type": "application/json"}).items()),
                    on_delivery=lambda problem, _: problems.append(problem) if problem is not None else None,
                )
            left = self._producer.flush(TIMEOUT + 5)
        except (KafkaException, BufferError) as error:
            return Outcome(LATER, f"Kafka: {error}")
        if problems or left:
            return Outcome(LATER, f"Kafka: {problems[0] if problems else f'{left} were not taken in time'}")
        return Outcome(TAKEN)

    async def close(self) -> None:
        await asyncio.to_thread(self._producer.flush, 5)


class Postgres:
    """`pg_notify` on a channel, in one transaction a batch. A note that is too long for it goes without its event."""

    def __init__(self, sink: Sink) -> None:
        self._dsn, self._channel = sink.target.dsn, sink.target.channel
        self._connection: Any = None

    async def send(self, notes: Sequence[Note]) -> Outcome:
        import psycopg

        try:
            async with asyncio.timeout(TIMEOUT):
                if self._connection is None or self._connection.closed:
                    self._connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
                async with self._connection.transaction(), self._connection.cursor() as cursor:
                    for note in notes:
                        await cursor.execute("SELECT pg_notify(%s, %s)", (self._channel, payload(note)))
        except (psycopg.Error, OSError, TimeoutError) as error:
            await self.close()
            return Outcome(LATER, f"PostgreSQL: {str(error).strip() or type(error).__name__}")
        return Outcome(TAKEN)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def payload(note: Note) -> str:
    if len(note.body) <= LONGEST_PAYLOAD:
        return note.body.decode()
    return orjson.dumps(note.fields() | {"event": None}).decode()
