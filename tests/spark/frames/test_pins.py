"""Pins: what one names is there, whoever commits and cleans up while it is made."""

from __future__ import annotations

import pytest

import tidings as td
from tests.spark.samples import SCHEMA, START, subscriptions
from tidings.durable.lake import lake as lakes
from tidings.durable.snapshots import Snapshots, snapshots_at, view_of
from tidings.spark.frames import pins
from tidings.spark.frames.pins import frame_pin, pinned

COMMITS = 12
"""More than the manifests that stay without a pin."""


def changed(topic: td.Topic, number: int, url: str | None) -> None:
    topic.subscribe(f"late{number}", "price < 3")
    topic.flush()
    if url is not None:
        topic.push(url)


@pytest.mark.parametrize("kind", ["folder", "lake"])
@pytest.mark.parametrize("pinning", [frame_pin, lambda place: pinned(place, "query", 0)], ids=["frame", "query"])
def test_a_pin_names_what_is_there_though_others_commit_while_it_is_made(tmp_path, monkeypatch, kind, pinning):
    monkeypatch.setattr(lakes, "GRACE", -1.0)
    monkeypatch.setattr(pins, "_frames", {})
    monkeypatch.setattr(pins, "_seen", {})
    url = f"file://{tmp_path}/lake" if kind == "lake" else None
    made = pins.pin_body
    with td.open(tmp_path / "topic", "offers", SCHEMA) as topic:
        topic.subscribe_many(subscriptions(20), time=START)
        changed(topic, 0, url)
        place: Snapshots = snapshots_at(url or tmp_path / "topic")
        commits = iter(range(1, 2 * COMMITS + 1))

        def body(pin: pins.Pin) -> bytes:
            """Between reading the newest manifest and pinning it, the first two times, many are committed."""
            for _ in range(COMMITS):
                number = next(commits, None)
                if number is not None:
                    changed(topic, number, url)
            return made(pin)

        monkeypatch.setattr(pins, "pin_body", body)
        pin = pinning(place)
        assert next(commits, None) is None, "they were committed in between"
        changed(topic, 99, url)
        view = view_of(place, pin.manifest, identity=pin.identity)
    assert len(view) == 20 + 2 * COMMITS + 1
    left = [one.name for one in place.notes.listed("pins/") if pinning is not frame_pin and "query/" not in one.name]
    assert left == [], "what held it until it was pinned is gone"
