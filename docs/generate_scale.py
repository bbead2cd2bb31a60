"""Writes `scale.md` from the runs of `python -m benchmarks.lake`: what was measured, and what a hundred million would take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.report import markdown

PAGE = Path(__file__).parent / "scale.md"
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "lake.json"
PAPER = 100_000_000
PRICES = {
    "vCPU, on demand, an hour": 0.0425,
    "object storage, a GB and month": 0.023,
    "a thousand puts": 0.005,
    "a thousand gets": 0.0004,
}
"""Dollars: an assumption, of the order of the large clouds' public price lists (a four-vCPU machine at 0.17 an hour, standard
object storage in a North American region). Put your own here and run `make docs`."""
EVENTS_A_SECOND = 10_000
INTRODUCTION = """# Scale: what was measured, and a hundred million on paper

Written by `make docs` (`docs/generate_scale.py`) from `benchmarks/results/lake.json`; do not edit. `python -m benchmarks.lake
2000000 16` makes a run: a topic in parts on an S3 server (versitygw on loopback), built on Spark, matched, changed by `follow`,
notified, on two cores and with an empty cache; brute force judges a sample of events, before the changes, after them, and what is
told.
"""


def rows(runs: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            "subscriptions": f"{run['subscriptions']:,}",
            "parts": str(run["parts"]),
            "build, CPU s": f"{run['build']['cpu_s']:,.0f}",
            "wall s": f"{run['build']['wall_s']:,.0f}",
            "most memory, GB": f"{run['build']['memory_mb'] / 1000:.1f}",
            "bytes a subscription": f"{stored(run):.0f}",
            "match, CPU us an event": f"{run['match']['cpu_us_per_event']:.0f}",
            f"follow, {run['follow']['changes']:,} changes, CPU s": f"{run['follow']['cpu_s']:.1f}",
            "uploaded, MB": f"{run['follow']['uploaded_mb']:.0f}",
            "notify, CPU s": f"{run['notify']['cpu_s']:.0f}",
            "equal to brute force": "yes"
            if all(run["equal_to_brute_force"][when] for when in ("before", "after", "told"))
            else "NO",
        }
        for run in runs
    ]


def stored(run: dict[str, Any]) -> float:
    """Bytes in the lake for each subscription."""
    return sum(run["lake"].values()) * 1e6 / run["subscriptions"]


def on_paper(run: dict[str, Any]) -> list[dict[str, str]]:
    """A hundred million by the largest run: what grows with subscriptions grows in proportion, an event costs what it cost."""
    times = PAPER / run["subscriptions"]
    gigabytes, hours = stored(run) * PAPER / 1e9, run["build"]["cpu_s"] * times / 3600
    mapped = run["lake"]["segment_mb"] / 1000 * times
    matching = run["match"]["cpu_us_per_event"] / 1e6 * EVENTS_A_SECOND
    core, month = PRICES["vCPU, on demand, an hour"], 30 * 24
    named = {
        "in the lake": (f"{gigabytes:,.0f} GB", f"{gigabytes * PRICES['object storage, a GB and month']:.2f} a month"),
        "to build it": (f"{hours * 3600:,.0f} CPU seconds", f"{hours * core:.2f} once"),
        "segments that machines map, all parts": (
            f"{mapped:,.0f} GB",
            "in the price of machines that hold the parts",
        ),
        f"to match {EVENTS_A_SECOND:,} events a second": (f"{matching:.2f} cores", f"{matching * core * month:.2f} a month"),
        f"{run['follow']['changes']:,} changes": (
            f"{run['follow']['cpu_s']:.0f} CPU seconds, {run['follow']['uploaded_mb']:.0f} MB",
            f"{run['follow']['cpu_s'] / 3600 * core + 2 * run['parts'] / 1000 * PRICES['a thousand puts']:.4f}",
        ),
    }
    return [{"what": what, "how much": much, "dollars": dollars} for what, (much, dollars) in named.items()]


def generated() -> str:
    runs = sorted(json.loads(RESULTS.read_text()), key=lambda run: run["subscriptions"])
    largest = runs[-1]
    prices = "; ".join(f"{what} {price:g}" for what, price in PRICES.items())
    return "\n".join(
        [
            INTRODUCTION,
            markdown(rows(runs)),
            "",
            f"## {PAPER:,} on paper\n",
            f"In proportion to the run of {largest['subscriptions']:,}. It was not run, and what no run has shown may come in "
            "between: more parts for an event to visit where boxes are large, a manifest that names more objects, a driver that "
            "waits for more tasks.\n",
            f"Dollars by these prices, which are an assumption and not a quotation: {prices}.\n",
            markdown(on_paper(largest)),
            "",
        ]
    )


def main() -> None:
    PAGE.write_text(generated())


if __name__ == "__main__":
    main()
