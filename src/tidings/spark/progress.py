"""What a running query tells of itself: one `Batch` for each micro-batch, gathered from Spark's reports; shown with rich."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming import StreamingQuery
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Batch:
    number: int
    started: str
    seconds: float
    events: int
    matches: int
    notifications: int
    refused: int
    state_rows: int
    behind: str


@dataclass
class Progress:
    """The micro-batches of a run, in order."""

    batches: dict[int, Batch] = field(default_factory=dict)

    def gather(self, query: StreamingQuery) -> bool:
        """Take in what is new; whether there was anything."""
        before = len(self.batches)
        for report in query.recentProgress:
            if report["numInputRows"] or report["batchId"] in self.batches:
                self.batches[report["batchId"]] = batch_of(report)
        return len(self.batches) > before

    @property
    def all(self) -> list[Batch]:
        return [self.batches[number] for number in sorted(self.batches)]

    def total(self, value: Callable[[Batch], float]) -> float:
        return sum(value(batch) for batch in self.batches.values())

    def rate(self, value: Callable[[Batch], float]) -> float:
        """A second of the batches' own time."""
        seconds = self.total(lambda batch: batch.seconds)
        return self.total(value) / seconds if seconds else 0.0


def batch_of(report: Any) -> Batch:
    observed = report["observedMetrics"]
    matched, told = (observed[name].asDict() if name in observed else {} for name in ("matched", "told"))
    return Batch(
        number=report["batchId"],
        started=report["timestamp"],
        seconds=report["durationMs"]["triggerExecution"] / 1000,
        events=report["numInputRows"],
        matches=matched.get("matches") or 0,
        notifications=told.get("notifications") or 0,
        refused=matched.get("refused") or 0,
        state_rows=sum(operator["numRowsTotal"] for operator in report["stateOperators"]),
        behind=_behind(report["sources"]),
    )


def _behind(sources: Sequence[Any]) -> str:
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
    for name in ("batch", "seconds", "events/s", "matches/s", "notifications", "refused", "state", "behind"):
        table.add_column(name, justify="right")
    for batch in progress.all[-last:]:
        table.add_row(*_cells(str(batch.number), batch))
    table.add_section()
    table.add_row(
        f"{len(progress.batches)} in all",
        f"{progress.total(lambda b: b.seconds):.1f}",
        f"{progress.rate(lambda b: b.events):,.0f}",
        f"{progress.rate(lambda b: b.matches):,.0f}",
        f"{progress.total(lambda b: b.notifications):,.0f}",
        f"{progress.total(lambda b: b.refused):,.0f}",
        "",
        "",
    )
    return table


def _cells(name: str, batch: Batch) -> list[str]:
    rates = (f"{count / batch.seconds:,.0f}" for count in (batch.events, batch.matches))
    return [
        name,
        f"{batch.seconds:.2f}",
        *rates,
        f"{batch.notifications:,}",
        str(batch.refused),
        f"{batch.state_rows:,}",
        batch.behind,
    ]
