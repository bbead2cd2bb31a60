"""What the runs counted, added up: `reliability/reliability.json`, and the page that is made of it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT, PAGE = ROOT / "reliability" / "reliability.json", ROOT / "docs" / "reliability.md"
EMPTY: dict[str, Any] = {"seeds": {}, "seconds": {}, "totals": {}, "failures": [], "runs": []}
INTRODUCTION = """# Reliability: what was done to it, and how often

Written by `make soak` (`python -m tests.soak`) from `reliability/reliability.json`; do not edit. Each run lasts at most half an
hour, goes on with the seeds after those of the run before and adds to the totals. `python -m tests.soak --seed 17 kills` does again
what seed 17 of the kind `kills` did.

What is checked each time: all that was acknowledged is there, what was not is there wholly or not at all, every answer is the
oracle's; a damaged file that is derived is rebuilt and no answer changes, a damaged registry is refused; no input raises
anything but an error of `tidings.errors`, takes more than a second of its thread's time or 100 MB, and after every few thousand
inputs the topic is packed, opened again and compared with one in memory that was told the same. (Inputs are drawn by
`tests/soak/drawing.py`; Hypothesis draws the same kinds in `tests/model/test_fuzz.py`, and shrinks them.) `-wal` files are not
damaged: SQLite takes what follows a damaged frame for never written. Of the service (`tests/serve/faults`): writer, readers,
receiver and clients are killed while publishers post, subscriptions come and go, and sinks, a stream and a consumer hear; every
acknowledged event is told to everyone concerned, nothing to anybody else, in order for each subscription, and what comes again
has the id that it had.

The kind `pipeline` is Kafka to `match` to `notify` to Parquet on a standalone Spark cluster, with its topic on an S3 server.
Workers, drivers, Kafka and the server are killed, between micro-batches and in the middle of them, and started again; in the end
the sink has every notification of the embedded engine, and none twice.

The kind `gateways` is a painted topic on a Kafka broker: gateways join, leave and are killed, the broker is restarted, zones are
split and watchers come and go while objects change; every few rounds each watcher's list and stream are the oracle's, none lost,
none twice, and nobody is told of a gap.
"""


def load() -> dict[str, Any]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else json.loads(json.dumps(EMPTY))


def save(record: dict[str, Any]) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    aside = KEPT.with_suffix(".new")
    aside.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(aside, KEPT)
    PAGE.write_text(page(record))


def begun(record: dict[str, Any]) -> dict[str, Any]:
    """The entry of a run that begins now."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    versions = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    run = {"began": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit.strip(), "machine": versions, "seconds": 0}
    record["runs"].append(run)
    return run


def page(record: dict[str, Any]) -> str:
    hours = sum(record["seconds"].values()) / 3600
    lines = [INTRODUCTION, f"{len(record['runs'])} runs, {hours:.1f} hours in all.\n", "| what | how often |", "|---|---:|"]
    lines += [f"| {what} | {count:,} |" for what, count in sorted(record["totals"].items())]
    lines += ["", "| kind | next seed | hours |", "|---|---:|---:|"]
    lines += [f"| {kind} | {record['seeds'][kind]} | {record['seconds'][kind] / 3600:.2f} |" for kind in sorted(record["seeds"])]
    lines += ["", f"Failures: {len(record['failures'])}, each with its cause, once it is known."]
    lines += [
        f"- `{f['kind']}`, seed {f['seed']}, commit {f['commit']}: {f.get('cause') or f['said'].splitlines()[0][:300]}"
        for f in record["failures"]
    ]
    return "\n".join(lines) + "\n"
