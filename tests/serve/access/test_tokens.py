"""Keys of an identity provider at a URL: read at the start, and again when a token names one that is not known."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.serve.conftest import DEALS, serving
from tidings.errors import TidingsError
from tidings.serve.access import tokens
from tidings.serve.access.tokens import Provider, Tokens
from tidings.serve.settings import Settings

ISSUER = "https://id.example"


@contextmanager
def provider() -> Iterator[tuple[str, list[dict[str, Any]], list[str]]]:
    """A real provider's address, the keys that it lists, and what was asked of it."""
    listed: list[dict[str, Any]] = []
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"keys": listed}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/jwks.json", listed, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def listed_as(key: rsa.RSAPrivateKey, kid: str) -> dict[str, Any]:
    return json.loads(RSAAlgorithm.to_jwk(key.public_key())) | {"kid": kid}


def token(key: rsa.RSAPrivateKey, kid: str) -> dict[str, str]:
    claims = {"iss": ISSUER, "aud": "tidings", "sub": "ann", "scope": "tidings:admin", "exp": time.time() + 60}
    return {"Authorization": f"Bearer {jwt.encode(claims, key, 'RS256', headers={'kid': kid})}"}


def test_keys_at_a_url_and_keys_that_rotate(tmp_path, monkeypatch):
    first, second = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    with provider() as (url, listed, asked):
        listed.append(listed_as(first, "one"))
        with serving(Settings(tmp_path / "data", provider=Provider(ISSUER, "tidings", url))) as client:
            assert client.put("/topics/deals", json=DEALS, headers=token(first, "one")).status_code == 201
            assert client.get("/topics", headers=token(second, "two")).status_code == 401
            assert asked == ["/jwks.json"], "read once, however often it is used, and no oftener than RENEWED"
            listed[:] = [listed_as(second, "two")]
            monkeypatch.setattr(tokens, "RENEWED", 0.0)
            deadline = time.monotonic() + 30
            while client.get("/topics", headers=token(second, "two")).status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert client.get("/topics", headers=token(first, "one")).status_code == 401


def test_a_provider_that_is_away_is_said_at_the_start_and_later_does_no_harm(tmp_path, monkeypatch):
    key = rsa.generate_private_key(65537, 2048)
    with provider() as (url, listed, _):
        listed.append(listed_as(key, "one"))
        known = Tokens(Provider(ISSUER, "tidings", url))
    monkeypatch.setattr(tokens, "RENEWED", 0.0)
    known.renew()
    assert known.caller(token(key, "one")["Authorization"].removeprefix("Bearer ")).id == "jwt:ann"
    with pytest.raises(TidingsError, match="cannot read the keys of the identity provider"):
        Tokens(Provider(ISSUER, "tidings", url))
