"""JWT of an identity provider: issuer and audience are checked, and the signature by the provider's keys (JWKS, a file or a URL).

Scopes are the entries of the claim `scope` (a string or a list) that begin with `tidings:`; an owner is the claim `sub`. Keys at a
URL are read when the service starts, and again when a token names one that is not known, at most every RENEWED seconds.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt

from tidings.errors import TidingsError
from tidings.serve.access.callers import OWNER, SCOPES, Caller
from tidings.serve.refusals import Unauthorized

ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"]
"""None that a public key could be mistaken for the secret of."""
RENEWED = 30.0
PREFIX = "tidings:"


@dataclass(frozen=True, slots=True)
class Provider:
    issuer: str
    audience: str
    jwks: str


class Tokens:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._keys: dict[str | None, Any] = {}
        self._read_at = -RENEWED
        self._turn = threading.Lock()
        self.renew()

    def renew(self) -> None:
        """Read the provider's keys; those that are known stay if they cannot be read again."""
        with self._turn:
            if time.monotonic() - self._read_at < RENEWED:
                return
            self._read_at = time.monotonic()
            try:
                found = jwt.PyJWKSet.from_dict(json.loads(_text(self._provider.jwks)))
            except (OSError, ValueError, jwt.PyJWTError) as error:
                if not self._keys:
                    raise TidingsError(
                        f"cannot read the keys of the identity provider at {self._provider.jwks}: {error}"
                    ) from error
                return
            self._keys = {key.key_id: key for key in found.keys}

    def knows(self, text: str) -> bool:
        """Whether the key that signed a token is at hand; a text that is no token is known to be none."""
        try:
            return jwt.get_unverified_header(text).get("kid") in self._keys
        except jwt.PyJWTError:
            return True

    def caller(self, text: str) -> Caller:
        try:
            key = self._keys.get(jwt.get_unverified_header(text).get("kid"))
            if key is None:
                raise Unauthorized("the token is signed by a key that the identity provider does not list")
            claims = jwt.decode(
                text,
                key,
                algorithms=ALGORITHMS,
                audience=self._provider.audience,
                issuer=self._provider.issuer,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise Unauthorized(f"the token is not accepted: {error}") from None
        said = claims.get("scope", "")
        words = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
        scopes = frozenset(w[len(PREFIX) :] for w in words if isinstance(w, str) and w.startswith(PREFIX)) & frozenset(SCOPES)
        subject = str(claims["sub"])
        return Caller(f"jwt:{subject}", scopes, subject if OWNER in scopes else None)


def _text(address: str) -> str:
    if address.startswith(("https://", "http://")):
        with urllib.request.urlopen(address, timeout=10) as answer:
            text: str = answer.read(2**20).decode()
            return text
    return Path(address).read_text()
