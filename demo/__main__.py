"""`python -m demo`: a country's offers find the people who wait for them, from Parquet files to notifications, on local Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rich.console import Console

from demo import offers
from tidings.spark.job.job_file import load_job
from tidings.spark.job.runner import run

ROOT = Path(__file__).resolve().parent


def main() -> None:
    os.chdir(ROOT.parent)
    console = Console()
    console.print(f"data: {offers.SUBSCRIPTIONS:,} subscriptions, {offers.BATCHES * offers.EVENTS:,} events in {ROOT / 'data'}")
    offers.make(ROOT / "data")
    for left_over in ("data/topic", "data/notifications", "data/refused", "checkpoint"):
        shutil.rmtree(ROOT / left_over, ignore_errors=True)
    run(load_job(ROOT / "job.toml"), "local[2]", console)


if __name__ == "__main__":
    main()
