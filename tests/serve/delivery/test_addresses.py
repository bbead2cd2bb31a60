"""Which hosts are called: asked of the address when the connection is made."""

from __future__ import annotations

import asyncio
import ipaddress
import time

import pytest

from tests.serve.conftest import DEALS, serving
from tests.serve.receiving import Receiver, receiving
from tidings.serve.delivery.addresses import Addresses, NotAllowed, is_public
from tidings.serve.settings import Settings


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
    ],
)
def test_public_addresses(address, public):
    assert is_public(ipaddress.ip_address(address)) == public


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]".strip("[]"), "169.254.169.254"])
def test_hosts_that_are_this_machine_in_other_words(host):
    async def ask() -> list[str]:
        return await Addresses().of(host, 80)

    with pytest.raises(OSError) as refused:
        asyncio.run(ask())
    assert "only public addresses" in str(refused.value) or "cannot be resolved" in str(refused.value)


def test_a_name_that_resolves_anew_is_judged_anew(monkeypatch):
    """DNS rebinding: the address is asked once a connection, and that very address is called."""
    answers = iter(["93.184.216.34", "127.0.0.1"])

    async def resolve(self, host, port, **_):
        return [(2, 1, 6, "", (next(answers), port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)

    async def ask() -> list[str]:
        return await Addresses().of("rebinding.example", 80)

    assert asyncio.run(ask()) == ["93.184.216.34"]
    with pytest.raises(NotAllowed):
        asyncio.run(ask())


def test_a_private_target_is_not_called_unless_allowed_by_name(tmp_path):
    with receiving() as receiver, serving(Settings(tmp_path / "data", open=True)) as client:
        client.put("/topics/deals", json=DEALS)
        client.put("/topics/deals/subscriptions/ann", json={})
        client.put("/topics/deals/sinks/inside", json={"kind": "webhook", "url": receiver.url})
        client.post("/topics/deals/events", json={"id": "e"})
        deadline = time.monotonic() + 20
        while not (said := client.get("/topics/deals/sinks/inside").json()).get("failing"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert "only public addresses are called" in said["failing"]
        assert receiver.messages == []


def test_redirects_are_not_followed(tmp_path):
    with receiving() as inner:
        outer = Receiver(lambda message: (307, {"Location": inner.url}))
        with receiving(outer), serving(Settings(tmp_path / "data", open=True, allow=("127.0.0.1",))) as client:
            client.put("/topics/deals", json=DEALS)
            client.put("/topics/deals/subscriptions/ann", json={})
            client.put("/topics/deals/sinks/s", json={"kind": "webhook", "url": outer.url, "give_up": 0})
            client.post("/topics/deals/events", json={"id": "e"})
            deadline = time.monotonic() + 20
            while not client.get("/topics/deals/sinks/s").json()["dead_letters"]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert inner.messages == []
