"""The program that `tidings submit` gives to spark-submit: a job file, the master, and `--set` changes."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from tidings.errors import TidingsError
from tidings.spark.job.job_reading import load_job
from tidings.spark.job.runner import run


def main(job: str, master: str, *sets: str) -> None:
    console = Console()
    try:
        run(load_job(Path(job), [change for change in sets if change != "--set"], master), master, console)
    except TidingsError as error:
        console.print(f"[red]tidings:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(*sys.argv[1:])
