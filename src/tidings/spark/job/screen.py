"""What a running job shows: one line that says where it is, and the table of its micro-batches.

On a terminal both are redrawn in place; elsewhere every step is a line of its own, and the table comes at the end.
"""

from __future__ import annotations

from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from tidings.spark.job.progress import Progress, shown


class Screen:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress()
        self._spinner = Spinner("dots", Text(""))
        self._live = Live(self._drawn(), console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, what: str) -> None:
        """The job is now doing this."""
        self._spinner.update(text=Text(what))
        if self._live is None:
            self.say(what)
        else:
            self.draw()

    def say(self, what: str) -> None:
        """A line that stays."""
        self.console.print(what, markup=False, highlight=False, soft_wrap=True)

    def draw(self) -> None:
        if self._live is not None:
            self._live.update(self._drawn())

    def _drawn(self) -> Group:
        return Group(self._spinner, shown(self.progress)) if self.progress.batches else Group(self._spinner)
