"""`python -m demo.live`: the console on what the pipeline left, with offers still coming."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer

from demo import offers
from tidings.client.connecting import connect
from tidings.commands.demonstrating import demonstrate
from tidings.console.demo import PAUSE, Coming
from tidings.errors import TidingsError

SERVED = Path(__file__).resolve().parent / "data" / "served"
FEW = 12
LIVES = np.timedelta64(30, "m")


class Offers(Coming):
    """The demo's offers, a few at a time, as of now."""

    def run(self) -> None:
        with connect(self.url, self.key) as service:
            self.wait(service)
            topic = service["offers"]
            for some in batches():
                topic.post(some)
                time.sleep(PAUSE)


def batches() -> Iterator[pa.Table]:
    """Without end; ids tell runs apart."""
    rng, begun = np.random.default_rng(random.randrange(2**32)), f"{int(time.time()):x}"
    place, weight = offers.places()
    for number in range(2**31):
        hour = offers.events(rng, place, weight, np.datetime64("now", "us"), number)
        for first in range(0, len(hour), FEW):
            some = hour.slice(first, FEW).drop_columns(["time", "expires"])
            ids = pa.array([f"{begun}-{id}" for id in some["id"].to_pylist()])
            ends = np.full(len(some), np.datetime64("now", "us") + LIVES)
            yield some.set_column(0, "id", ids).append_column("expires", pa.array(ends, pa.timestamp("us", "UTC")))


def main(port: int = 8080, folder: Path = SERVED) -> None:
    if not folder.is_dir():
        raise SystemExit("there is nothing to serve yet: run 'make demo' first")
    try:
        demonstrate(folder, "127.0.0.1", port, "warning", coming=Offers)
    except TidingsError as error:
        raise SystemExit(f"tidings: {error}") from None


if __name__ == "__main__":
    typer.run(main)
