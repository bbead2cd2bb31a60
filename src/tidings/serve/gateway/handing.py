"""Who serves what: the group's members say which zones each has, and a member's name is its address."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
import zlib
from collections.abc import Mapping

import httpx
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tidings.kafka.layout import named
from tidings.serve.gateway.consuming import group_of

FRESH = 0.5
"""Seconds for which the group's word is taken for true."""
ASKED = "tidings-asked"
"""A header of questions between gateways, which are not asked on."""


def zone_of_id(id: str, zones: int) -> int:
    """The partition that Kafka's clients give a record with this key (`consistent`, librdkafka's default)."""
    return zlib.crc32(id.encode()) % zones


def assigned(body: bytes) -> dict[str, list[int]]:
    """Topics and their partitions of a member, as Kafka's consumer protocol writes them: a version; of each topic its name and
    partitions. (`describe_consumer_groups` reads it too, but may end the process while a broker is away.)"""
    found: dict[str, list[int]] = {}
    if len(body) < 6:
        return found
    (count,), at = struct.unpack_from("!i", body, 2), 6
    for _ in range(count):
        (size,) = struct.unpack_from("!h", body, at)
        name, at = body[at + 2 : at + 2 + size].decode(), at + 2 + size
        (partitions,) = struct.unpack_from("!i", body, at)
        found[name] = list(struct.unpack_from(f"!{partitions}i", body, at + 4))
        at += 4 + 4 * partitions
    return found


class Handing:
    def __init__(self, brokers: str, topic: str, url: str) -> None:
        self._topic, self.url = topic, url
        self._admin = AdminClient({"bootstrap.servers": brokers})
        self._known: dict[int, str] = {}
        self._at = 0.0
        self._turn = threading.Lock()
        self._http = httpx.AsyncClient(timeout=5.0)

    def owners(self) -> dict[int, str]:
        """The address of the gateway that has each zone."""
        with self._turn:
            if time.monotonic() - self._at > FRESH:
                try:
                    groups = self._admin.list_groups(group_of(self._topic), timeout=5)
                except KafkaException:
                    return self._known
                name = named(self._topic, "messages")
                members = [(member.client_id, assigned(member.assignment)) for group in groups for member in group.members]
                self._known = {zone: url for url, topics in members for zone in topics.get(name, ())}
                self._at = time.monotonic()
            return self._known

    async def owner(self, zone: int) -> str | None:
        return (await asyncio.to_thread(self.owners)).get(zone)

    async def locate(self, id: str, headers: Mapping[str, str]) -> str | None:
        """The other gateway that has a watcher; they are asked, all at once."""
        others = {url for url in (await asyncio.to_thread(self.owners)).values() if url != self.url}
        asked = {name: value for name, value in headers.items() if name == "authorization"} | {ASKED: "1"}

        async def has(url: str) -> str | None:
            try:
                return url if (await self._http.head(f"{url}/watchers/{id}", headers=asked)).status_code == 200 else None
            except httpx.HTTPError:
                return None

        found = await asyncio.gather(*map(has, others))
        return next((url for url in found if url is not None), None)

    async def forget(self, url: str, id: str, headers: Mapping[str, str]) -> None:
        """A watcher has begun here that was there."""
        asked = {name: value for name, value in headers.items() if name == "authorization"} | {ASKED: "1"}
        (await self._http.delete(f"{url}/watchers/{id}", headers=asked)).raise_for_status()

    async def close(self) -> None:
        await self._http.aclose()
