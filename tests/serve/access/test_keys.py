"""Keys, tokens and quotas at the door, and owners who try what they may not."""

from __future__ import annotations

import json
import time

import httpx
import jwt
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.serve.conftest import DEALS, serving
from tests.serve.listening import listen, said, take
from tidings.errors import TidingsError
from tidings.serve.access.callers import Caller
from tidings.serve.access.keys import Keys
from tidings.serve.access.meters import Meters
from tidings.serve.access.quotas import Quotas
from tidings.serve.access.tokens import Provider
from tidings.serve.app.answers import ARROW, stream_bytes
from tidings.serve.hosting.ledger import Ledger
from tidings.serve.refusals import TooLarge, TooMany
from tidings.serve.run.server import serve
from tidings.serve.settings import Settings

SUBSCRIPTIONS = "/topics/deals/subscriptions"


@pytest.fixture
def closed(tmp_path):
    """A service that asks for keys: a client without one, and how to make clients that have one."""
    folder = tmp_path / "data"
    ledger = Ledger(folder)
    _, text = Keys(ledger).make({"scopes": ["admin"]})
    ledger.close()
    clients = []
    with serving(Settings(folder)) as nobody:

        def having(key: str) -> httpx.Client:
            clients.append(httpx.Client(base_url=nobody.base_url, headers={"Authorization": f"Bearer {key}"}, timeout=30))
            return clients[-1]

        admin = having(text)
        assert admin.put("/topics/deals", json=DEALS).status_code == 201

        def made(**said) -> httpx.Client:
            return having(admin.post("/keys", json=said).json()["key"])

        yield nobody, admin, made
        for each in clients:
            each.close()


def test_no_key_no_access(closed):
    nobody, admin, _ = closed
    for method, address in [("GET", "/topics"), ("GET", "/keys"), ("POST", "/topics/deals/events"), ("DELETE", "/topics/deals")]:
        answer = nobody.request(method, address)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert nobody.request(method, address, headers={"Authorization": "Bearer td_nonsense"}).status_code == 401
        assert nobody.request(method, address, headers={"Authorization": "Basic eDp5"}).status_code == 401
    assert nobody.get("/healthz").status_code == 200
    assert admin.get("/topics").status_code == 200


def test_a_key_is_shown_once_and_withdrawn(closed, tmp_path):
    nobody, admin, _ = closed
    answer = admin.post("/keys", json={"name": "shop", "scopes": ["publish"], "quotas": {"events": 5}})
    assert answer.status_code == 201
    key = answer.json()
    listed = {one["id"]: one for one in admin.get("/keys").json()["keys"]}
    assert listed[key["id"]] == {name: value for name, value in key.items() if name != "key"}
    assert key["key"].encode() not in (tmp_path / "data" / "service.sqlite").read_bytes()
    as_shop = {"Authorization": f"Bearer {key['key']}"}
    assert nobody.post("/topics/deals/events", json={"price": 1}, headers=as_shop).status_code == 200
    assert admin.delete(f"/keys/{key['id']}").status_code == 204
    assert admin.delete(f"/keys/{key['id']}").status_code == 404
    assert nobody.post("/topics/deals/events", json={"price": 1}, headers=as_shop).status_code == 401


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"scopes": []}, "scopes is []"),
        ({"scopes": ["root"]}, "scopes is ['root']"),
        ({"scopes": ["owner"]}, "go together"),
        ({"scopes": ["read"], "owner": "o"}, "go together"),
        ({"scopes": ["read"], "quotas": {"speed": 1}}, "quotas.speed is unknown"),
        ({"scopes": ["read"], "quotas": {"k": -1}}, "quotas.k is -1"),
        ({"scopes": ["read"], "colour": 1}, "field 'colour' is unknown"),
    ],
)
def test_keys_that_cannot_be(closed, asked, sentence):
    answer = closed[1].post("/keys", json=asked)
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True)


def test_each_scope_may_do_its_own(closed):
    _, _, made = closed
    may = {
        "publish": {("POST", "/topics/deals/events"), ("GET", "/topics")},
        "read": {
            ("POST", "/topics/deals/match"),
            ("GET", SUBSCRIPTIONS),
            ("GET", "/topics/deals/notifications"),
            ("GET", "/topics"),
        },
        "owner": {
            ("PUT", f"{SUBSCRIPTIONS}/x"),
            ("GET", SUBSCRIPTIONS),
            ("GET", "/topics/deals/notifications"),
            ("GET", "/topics"),
        },
    }
    asked = set().union(*may.values()) | {("GET", "/keys"), ("PUT", "/topics/deals"), ("DELETE", "/topics/deals")}
    for scope, allowed in may.items():
        client = made(scopes=[scope], owner="o" if scope == "owner" else None)
        for method, address in asked:
            content = {} if method in ("PUT", "POST") else None
            refused = client.request(method, address, json=content).status_code == 403
            assert refused == ((method, address) not in allowed), (scope, method, address)


def test_a_hostile_owner_gets_nothing_of_anothers(closed):
    _, admin, made = closed
    ann, eve = made(scopes=["owner"], owner="ann"), made(scopes=["owner"], owner="eve")
    assert ann.put(f"{SUBSCRIPTIONS}/a", json={"filter": "price < 5", "tags": ["t"]}).status_code == 201
    assert ann.put("/topics/deals/consumers/mail", json={"subscription": "a"}).status_code == 201
    admin.put(f"{SUBSCRIPTIONS}/free", json={"filter": "price < 5"})
    admin.post("/topics/deals/events", json={"id": "e", "price": 1})
    for method, address, content in [
        ("GET", f"{SUBSCRIPTIONS}/a", None),
        ("PATCH", f"{SUBSCRIPTIONS}/a", {"score": 9}),
        ("DELETE", f"{SUBSCRIPTIONS}/a", None),
        ("POST", f"{SUBSCRIPTIONS}/a/move", {"point": [1, 1]}),
        ("GET", f"{SUBSCRIPTIONS}/a/top", None),
        ("PATCH", f"{SUBSCRIPTIONS}/free", {"owner": "eve"}),
        ("POST", "/topics/deals/explain?subscription=a", {"price": 1}),
        ("GET", "/topics/deals/notifications?subscription=a", None),
        ("GET", "/topics/deals/notifications?consumer=mail", None),
        ("GET", "/topics/deals/consumers/mail", None),
        ("DELETE", "/topics/deals/consumers/mail", None),
        ("PUT", "/topics/deals/consumers/mail", {}),
        ("POST", "/topics/deals/consumers/mail/acknowledge", {"cursor": 1}),
    ]:
        assert eve.request(method, address, json=content).status_code == 404, (method, address)
    assert eve.put(f"{SUBSCRIPTIONS}/a", json={}).status_code == 409
    assert eve.put(f"{SUBSCRIPTIONS}/mine", json={"owner": "ann"}).status_code == 403
    assert eve.get("/topics/deals/notifications?owner=ann").status_code == 403
    assert eve.get(f"{SUBSCRIPTIONS}?owner=ann").json()["subscriptions"] == []
    assert eve.get(f"{SUBSCRIPTIONS}?tag=t").json()["subscriptions"] == []
    assert eve.get("/topics/deals/consumers").json()["consumers"] == []
    assert eve.get("/topics/deals/notifications?after=0").json()["notifications"] == []
    assert eve.post("/topics/deals/unsubscribe", json={"ids": ["a", "free"]}).json() == {"removed": 0}
    for ids in (["a"], ["free"]):
        table = stream_bytes(pa.table({"id": ids}))
        assert eve.post(SUBSCRIPTIONS, content=table, headers={"content-type": ARROW}).status_code == 409
    assert [n.data["event"]["id"] for n in take(ann, 1, after=0)] == ["e"]
    assert ann.get(f"{SUBSCRIPTIONS}/a").json()["owner"] == "ann"


def test_a_subscription_that_changes_hands_takes_no_old_notifications_along(closed):
    _, admin, made = closed
    ann, eve = made(scopes=["owner"], owner="ann"), made(scopes=["owner"], owner="eve")
    ann.put(f"{SUBSCRIPTIONS}/a", json={})
    admin.post("/topics/deals/events", json={"id": "hers"})
    admin.patch(f"{SUBSCRIPTIONS}/a", json={"owner": "eve"})
    admin.post("/topics/deals/events", json={"id": "his"})
    assert [n["event"]["id"] for n in eve.get("/topics/deals/notifications?subscription=a").json()["notifications"]] == ["his"]
    assert [n["event"]["id"] for n in ann.get("/topics/deals/notifications").json()["notifications"]] == ["hers"]


def test_quotas(closed):
    _, _, made = closed
    quotas = {"subscriptions": 2, "clauses": 2, "k": 10, "vertices": 8, "bytes": 2000, "streams": 1}
    ann = made(scopes=["owner"], owner="ann", quotas=quotas)
    many = ", ".join(f"{x} {x * x}" for x in range(12)) + ", 0 0"
    for content, sentence in [
        ({"filter": "price = 1 OR price = 5 OR brand = 'x'"}, "clauses"),
        ({"k": 11, "window": "1 day"}, "k is 11"),
        ({"filter": f"S_INTERSECTS(place, POLYGON(({many})))"}, "corners"),
        ({"filter": "brand = '" + "x" * 2000 + "'"}, "bytes"),
    ]:
        answer = ann.put(f"{SUBSCRIPTIONS}/a", json=content)
        assert (answer.status_code, sentence in answer.json()["detail"]) == (413, True), answer.json()
    assert ann.put(f"{SUBSCRIPTIONS}/a", json={}).status_code == 201
    assert ann.put(f"{SUBSCRIPTIONS}/b", json={}).status_code == 201
    answer = ann.put(f"{SUBSCRIPTIONS}/c", json={})
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (429, True)
    lines = b'{"id": "c"}\n{"id": "d"}'
    assert ann.post(SUBSCRIPTIONS, content=lines, headers={"content-type": "application/x-ndjson"}).status_code == 429
    with listen(ann, "deals") as response:
        stream = said(response)
        next(stream)
        assert ann.get("/topics/deals/notifications", headers={"accept": "text/event-stream"}).status_code == 429
    shop = made(scopes=["publish"], quotas={"events": 3})
    assert [shop.post("/topics/deals/events", json={"price": 1}).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert shop.post("/topics/deals/events", json=[{"price": 1}] * 4).status_code == 413


def test_a_bucket_fills_again():
    now = [0.0]
    meters, caller = Meters(lambda: now[0]), Caller("k", frozenset(), None, Quotas(events=10))
    meters.events(caller, 10)
    with pytest.raises(TooMany) as refused:
        meters.events(caller, 5)
    assert refused.value.headers == {"Retry-After": "1"}
    now[0] = 0.5
    meters.events(caller, 5)
    with pytest.raises(TooLarge):
        meters.events(caller, 11)


def test_tokens_of_an_identity_provider(tmp_path):
    key, other = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    public = json.loads(RSAAlgorithm.to_jwk(key.public_key())) | {"kid": "one"}
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [public]}))
    provider = Provider("https://id.example", "tidings", str(tmp_path / "jwks.json"))
    claims = {"iss": "https://id.example", "aud": "tidings", "sub": "ann", "scope": "email tidings:owner", "exp": time.time() + 60}

    def token(signer=key, kid="one", **changes) -> dict[str, str]:
        text = jwt.encode(claims | changes, signer, "RS256", headers={"kid": kid})
        return {"Authorization": f"Bearer {text}"}

    with serving(Settings(tmp_path / "data", provider=provider)) as client:
        admin = token(scope=["tidings:admin"])
        assert client.put("/topics/deals", json=DEALS, headers=admin).status_code == 201
        assert client.put(f"{SUBSCRIPTIONS}/a", json={}, headers=token()).status_code == 201
        assert client.get(f"{SUBSCRIPTIONS}/a", headers=token()).json()["owner"] == "ann"
        assert client.get(f"{SUBSCRIPTIONS}/a", headers=token(sub="eve")).status_code == 404
        unsigned = jwt.encode(claims, None, "none", headers={"kid": "one"})
        confused = jwt.encode(claims, "x" * 64, "HS256", headers={"kid": "one"})
        for bad in (
            token(exp=time.time() - 60),
            token(iss="https://evil.example"),
            token(aud="other"),
            token(signer=other),
            token(kid="two"),
            {"Authorization": f"Bearer {unsigned}"},
            {"Authorization": f"Bearer {confused}"},
        ):
            assert client.get("/topics", headers=bad).status_code == 401
        assert client.get("/topics", headers=token(scope="email")).status_code == 403


def test_open_is_for_loopback(tmp_path):
    with pytest.raises(TidingsError, match="not loopback"):
        serve(Settings(tmp_path, open=True), "0.0.0.0")
