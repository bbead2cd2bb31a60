"""Which hosts a sink may call, asked when the connection is made: a name that resolves anew does not get around it.

Only addresses that are reachable for everybody are called: not private, loopback, link-local, shared or reserved ones, nor such
behind an IPv6 form of an IPv4 address. A host that the operator allows by name may be anywhere. The name is resolved here and the
connection made to the address that was judged, so nothing is asked twice.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from tidings.serve.refusals import Unacceptable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")


class NotAllowed(OSError):
    """The host has no address that may be called."""


def is_public(address: Address) -> bool:
    inner: list[Address | None] = []
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
    return address.is_global and not address.is_multicast and all(is_public(one) for one in inner if one is not None)


class Addresses:
    """Of hosts: public ones, and any of those that are allowed by name."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = {name.lower().rstrip(".") for name in allowed}

    async def of(self, host: str, port: int) -> list[str]:
        """What the host resolves to now, of which one may be called."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise OSError(f"{host} cannot be resolved: {error}") from error
        every = list(dict.fromkeys(str(place[0]) for *_, place in found))
        if host.lower().rstrip(".") in self._allowed:
            return every
        public = [one for one in every if is_public(ipaddress.ip_address(one.partition("%")[0]))]
        if not public:
            raise NotAllowed(f"{host} is {', '.join(every)}: only public addresses are called, and hosts allowed by name")
        return public


def read_url(url: Any) -> str:
    """An address that could be called; whether its host may be is asked when it is."""
    text = url if isinstance(url, str) and url.isascii() and len(url) <= 2000 and not any(c <= " " for c in url) else ""
    try:
        read = urlsplit(text)
        fits = read.scheme in ("http", "https") and bool(read.hostname) and "@" not in read.netloc and read.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise Unacceptable(f"url is {url!r}: an address that begins with https:// or http:// and a host is accepted")
    return text
