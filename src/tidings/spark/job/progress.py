"""What a running query tells of itself: one `Batch` for each micro-batch, as a StreamingQueryListener hears it; shown with rich."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, or several together (`Progress.total`)."""

    number: int
    seconds: float = 0.0
    events: int = 0
    matches: int = 0
    notifications: int = 0
    refused: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    lag: str = ""

    def rate(self, count: int) -> float:
        """A second of the batch's own time."""
        return count / self.seconds if self.seconds else 0.0


@dataclass
class Progress:
    """The micro-batches of a run, by number."""

    batches: dict[int, Batch] = field(default_factory=dict)

    def take(self, report: StreamingQueryProgress) -> None:
        """A micro-batch without events counts if it told somebody: what a timer brought."""
        batch = batch_of(report)
        if batch.events or batch.notifications:
            self.batches[batch.number] = batch

    @property
    def all(self) -> list[Batch]:
        return [self.batches[number] for number in sorted(self.batches)]

    @property
    def warm(self) -> list[Batch]:
        """The later half, when workers run, kernels are loaded and the JVM has compiled what it runs most."""
        return self.all[len(self.batches) // 2 :]

    @property
    def total(self) -> Batch:
        return summed(self.all)


def summed(batches: Sequence[Batch]) -> Batch:
    """Their sums; `number` counts them."""
    names = ("seconds", "events", "matches", "notifications", "refused")
    return Batch(len(batches), *(sum(getattr(batch, name) for batch in batches) for name in names))


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Hears of every query of the session and keeps what one of them, named by its id, has to tell.

    Spark calls it from a thread of its own: `news` is set after every call.
    """

    def __init__(self) -> None:
        self.progress = Progress()
        self.news = threading.Event()
        self.ended = threading.Event()
        self._query = ""
        self._before: list[StreamingQueryProgress] = []

    def hear(self, seconds: float) -> None:
        """Wait so long for news, or until there are any."""
        self.news.wait(seconds)
        self.news.clear()

    def listen_to(self, query: str) -> None:
        """Spark may have told of the query before its id was known here."""
        self._query, before = query, self._before
        self._before = []
        for report in before:
            self._take(report)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._take(event.progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        if str(event.id) == self._query:
            self.ended.set()
            self.news.set()

    def _take(self, report: StreamingQueryProgress) -> None:
        if not self._query:
            self._before.append(report)
        elif str(report["id"]) == self._query:
            self.progress.take(report)
            self.news.set()


def batch_of(report: StreamingQueryProgress) -> Batch:
    observed = [row.asDict() for row in report["observedMetrics"].values()]
    matched, refused = (sum(row.get(name) or 0 for row in observed) for name in ("matched", "refused"))
    told = [row["told"] or 0 for row in observed if "told" in row]
    return Batch(
        number=report["batchId"],
        seconds=report["durationMs"]["triggerExecution"] / 1000,
        events=report["numInputRows"],
        matches=matched,
        notifications=sum(told) if told else matched,
        refused=refused,
        state_rows=sum(operator["numRowsTotal"] for operator in report["stateOperators"]),
        state_bytes=sum(operator["memoryUsedBytes"] for operator in report["stateOperators"]),
        lag=_lag(report["sources"]),
    )


def _lag(sources: Sequence[SourceProgress]) -> str:
    """What waits at the source, as far as it says: offsets for Kafka, files for files."""
    for source in sources:
        metrics = source.get("metrics") or {}
        if "maxOffsetsBehindLatest" in metrics:
            return f"{metrics['maxOffsetsBehindLatest']} offsets"
        if "numFilesOutstanding" in metrics:
            return f"{metrics['numFilesOutstanding']} files"
    return ""


def shown(progress: Progress, last: int = 12) -> Table:
    """The last batches as a table, with the sums below."""
    table = Table(title="micro-batches", title_justify="left")
    for name in ("batch", "seconds", "events/s", "matches/s", "notifications", "refused", "state rows", "state MB", "lag"):
        table.add_column(name, justify="right")
    for batch in progress.all[-last:]:
        state = (f"{batch.state_rows:,}", f"{batch.state_bytes / 1e6:,.0f}", batch.lag)
        table.add_row(str(batch.number), *_figures(batch), *state)
    table.add_section()
    table.add_row(f"{len(progress.batches)} in all", *_figures(progress.total), "", "", "")
    return table


def _figures(batch: Batch) -> list[str]:
    rates = [f"{batch.rate(count):,.0f}" for count in (batch.events, batch.matches)]
    return [f"{batch.seconds:.2f}", *rates, f"{batch.notifications:,}", f"{batch.refused:,}"]
