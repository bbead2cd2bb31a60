"""`serve --demo`: the service on topics of its own, into which events keep coming, for whoever wants to see it at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from tidings.console.demo import Coming


def demonstrate(
    folder: Path | None, host: str, port: int, log: str, tiles: str | None = None, coming: Callable[[str], Thread] = Coming
) -> None:
    """Serve until told to stop; without a folder, one that is gone afterwards. `coming` publishes to the address it is given."""
    from tidings.serve.run.server import open_door, server_of
    from tidings.serve.settings import Settings

    with ExitStack() as open_until_the_end:
        place = Path(open_until_the_end.enter_context(TemporaryDirectory(prefix="tidings-demo-"))) if folder is None else folder
        settings = Settings(place, open=True, log=log, tiles=tiles)
        door = open_door(settings, host, port)
        bound, number = door.getsockname()[:2]
        print(f"the console is at http://{bound}:{number}/; Ctrl-C ends it", flush=True)
        coming(f"http://{bound}:{number}").start()
        server_of(settings).run(sockets=[door])
