"""`python -m demo`: a country's offers find the people who wait for them, from Parquet files to notifications, on local Spark."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console

from demo import offers
from demo.land import land
from tidings.spark.job.job_reading import load_job
from tidings.spark.job.runner import run

ROOT = Path(__file__).resolve().parent
HOUR = np.timedelta64(1, "h")


def main() -> None:
    os.chdir(ROOT.parent)
    console = Console()
    console.print(
        f"{offers.SUBSCRIPTIONS:,} people wait for offers; {offers.BATCHES * offers.EVENTS:,} offers come.", highlight=False
    )
    for left_over in ("data", "checkpoint"):
        shutil.rmtree(ROOT / left_over, ignore_errors=True)
    offers.make(
        ROOT / "data", np.datetime64(datetime.now(UTC).replace(tzinfo=None, minute=0, second=0, microsecond=0), "us") + HOUR
    )
    run(load_job(ROOT / "job.toml"), "local[2]", console, land=land)
    console.print(
        "[bold]make live[/bold] serves what is here, with offers still coming, and a console at http://127.0.0.1:8080/",
        highlight=False,
    )


if __name__ == "__main__":
    main()
