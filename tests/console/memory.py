"""`python -m tests.console.memory`: twelve minutes of load with the page open, and what it holds meanwhile.

The demo's events come, and every ten seconds 5,000 more at once; the page stays at Live, and looks in at every other room once a
minute. Every half minute garbage is collected, and heap, nodes and listeners are counted. The result is
`reliability/console.json`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page

from tests.console.browsing import chromium, looking
from tests.serve.running import Running
from tidings.console import demo

RESULT = Path("reliability/console.json")
LOOK, BURST, ROUND = 30, 10, 60
MANY = 5000
ROOMS = ("subscriptions", "explain", "boards", "engine")


def counted(session: CDPSession) -> dict[str, float]:
    session.send("HeapProfiler.collectGarbage")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return {"heap": metrics["JSHeapUsedSize"], "nodes": metrics["Nodes"], "listeners": metrics["JSEventListeners"]}


def look_around(page: Page) -> None:
    for room in (*ROOMS, "live"):
        page.evaluate(f"location.hash = '#/{room}'")
        page.get_by_role("heading", level=1).filter(has_text=room.capitalize()).wait_for()
        page.wait_for_timeout(500)


def burst(service: Running, numbers: Any) -> None:
    rng = random.Random(next(numbers))
    lines = []
    for _ in range(MANY):
        lines.append(json.dumps({"id": f"burst-{next(numbers)}", "price": rng.uniform(1, 900), "place": demo.near(rng)[1]}))
    service.client.post("/topics/offers/events", content="\n".join(lines), headers={"Content-Type": "application/x-ndjson"})


def run(minutes: float) -> dict[str, Any]:
    samples: list[dict[str, float]] = []
    numbers, sent = count(), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        Running(Path(folder) / "data", "--demo", access=()) as service,
        chromium() as browser,
    ):
        while len(service.client.get("/topics").json()["topics"]) < 2:
            time.sleep(0.2)
        with looking(browser, service.url) as page:
            page.goto(service.url)
            page.get_by_role("heading", level=1).wait_for()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            began = time.monotonic()
            due = {"look": 0.0, "burst": 0.0, "round": float(ROUND)}
            while (at := time.monotonic() - began) < minutes * 60:
                if at >= due["burst"]:
                    burst(service, numbers)
                    sent, due["burst"] = sent + MANY, at + BURST
                if at >= due["round"]:
                    look_around(page)
                    due["round"] = at + ROUND
                if at >= due["look"]:
                    samples.append({"seconds": round(at, 1), **counted(session)})
                    due["look"] = at + LOOK
                    print(samples[-1], flush=True)
                page.wait_for_timeout(500)
            samples.append({"seconds": round(time.monotonic() - began, 1), **counted(session)})
            version = browser.version
        published = service.client.get("/topics/offers/stats").json()["published"]
    return {"samples": samples, "bursts": sent, "published": published, "chromium": version}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=12)
    found = run(parser.parse_args().minutes)
    warm = [one for one in found["samples"] if one["seconds"] >= 120] or found["samples"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    ends = {name: [warm[0][name], warm[-1][name]] for name in ("heap", "nodes", "listeners")}
    about = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit, "machine": platform.machine()}
    RESULT.write_text(json.dumps(about | {"after two minutes and at the end": ends} | found, indent=1) + "\n")
    print(f"heap {ends['heap'][0] / 1e6:.1f} MB after two minutes, {ends['heap'][1] / 1e6:.1f} MB at the end: {RESULT}")


if __name__ == "__main__":
    main()
