"""The report of a run: a table for the terminal, and one HTML page with inline SVG that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.table import Table

from tidings.durable.manifest_view import View
from tidings.model.columns.tables import events_from_arrow
from tidings.model.values.schema import Place
from tidings.spark.job.progress import Progress

WIDTH, HEIGHT = 640, 200
BOXES = 400
STYLE = """
:root { --ink: #1c2430; --soft: #66707d; --line: #d8dde3; --bar: #2f6f8f; --mark: #c4572a; --ground: #fbfaf7; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
body { margin: 2rem auto; max-width: 900px; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
p { color: var(--soft); margin: .2rem 0 1rem; }
table { border-collapse: collapse; }
td { padding: .2rem 1.2rem .2rem 0; text-align: left; border-bottom: 1px solid var(--line); }
td + td { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; display: block; } text { font: 11px system-ui, sans-serif; fill: var(--soft); }
"""


@dataclass(frozen=True)
class Report:
    topic: str
    subscriptions: int
    seconds: float
    progress: Progress
    top: Sequence[tuple[str, int]]
    view: View
    places: pa.Table | None

    def figures(self) -> list[tuple[str, str]]:
        total = self.progress.total
        seconds = np.array([batch.seconds for batch in self.progress.all] or [0.0])
        counts = {
            "subscriptions": self.subscriptions,
            "events": total.events,
            "matches": total.matches,
            "notifications": total.notifications,
            "refused events": total.refused,
            "micro-batches": total.number,
            "events a second, within batches": round(total.rate(total.events)),
            "matches a second, within batches": round(total.rate(total.matches)),
        }
        times = {"micro-batch, median": np.median(seconds), "micro-batch, slowest": seconds.max(), "the whole run": self.seconds}
        return [(name, f"{n:,}") for name, n in counts.items()] + [(name, f"{n:.2f} s") for name, n in times.items()]

    def table(self) -> Table:
        table = Table(title=f"topic {self.topic}", title_justify="left", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for name, figure in self.figures():
            table.add_row(name, figure)
        return table


def write_report(path: Path, report: Report) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(report))


def page(report: Report) -> str:
    batches = report.progress.all
    rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{figure}</td></tr>" for name, figure in report.figures())
    sections = [
        f"<h1>{html.escape(report.topic)}</h1><p>A run of the tidings pipeline.</p><table>{rows}</table>",
        section("Throughput", "Events a second in each micro-batch.", bars([b.rate(b.events) for b in batches])),
        section(
            "Latency", "How many micro-batches took so long or longer, up to the next bar.", histogram([b.seconds for b in batches])
        ),
    ]
    if report.top:
        sections.append(section("Most notified", "Subscriptions with the most rows at the sink.", ranking(report.top)))
    if report.places is not None and len(report.places):
        drawn = world(report.view, report.places)
        sections.append(section("Where", "Events as points; the places of some subscriptions as boxes.", drawn))
    body = "\n".join(sections)
    head = f'<meta charset="utf-8"><title>{html.escape(report.topic)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en">{head}{body}</html>\n'


def section(title: str, what: str, drawing: str) -> str:
    return f"<h2>{title}</h2><p>{what}</p>{drawing}"


def svg(inside: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img">{inside}</svg>'


def bars(values: Sequence[float], labels: Sequence[str] | None = None) -> str:
    if not values:
        return "<p>Nothing ran.</p>"
    high, base = max(max(values), 1e-9), HEIGHT - 20
    step = (WIDTH - 60) / len(values)
    drawn = [f'<line x1="50" x2="{WIDTH}" y1="{base}" y2="{base}" stroke="var(--line)"/>']
    for share in (0.5, 1.0):
        y = base - share * (base - 15)
        drawn.append(f'<line x1="50" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)" stroke-dasharray="2 4"/>')
        drawn.append(f'<text x="46" y="{y + 4:.1f}" text-anchor="end">{share * high:,.4g}</text>')
    every = max(1, len(values) // 12)
    for place, value in enumerate(values):
        x, tall = 55 + place * step, value / high * (base - 15)
        drawn.append(
            f'<rect x="{x:.1f}" y="{base - tall:.1f}" width="{max(step - 2, 0.5):.1f}" height="{tall:.1f}" fill="var(--bar)"/>'
        )
        if place % every == 0:
            label = labels[place] if labels else str(place)
            drawn.append(f'<text x="{x + step / 2 - 1:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>')
    return svg("".join(drawn))


def histogram(seconds: Sequence[float]) -> str:
    counts, edges = np.histogram(seconds, bins=min(20, max(5, len(seconds) // 2)))
    return bars(counts.tolist(), [f"{edge:.2g} s" for edge in edges[:-1]])


def ranking(top: Sequence[tuple[str, int]]) -> str:
    high = max(count for _, count in top)
    drawn = []
    for place, (name, count) in enumerate(top):
        y, wide = 22 * place, count / high * (WIDTH - 260)
        drawn.append(f'<text x="150" y="{y + 15}" text-anchor="end">{html.escape(name[:24])}</text>')
        drawn.append(f'<rect x="158" y="{y + 4}" width="{wide:.1f}" height="14" fill="var(--bar)"/>')
        drawn.append(f'<text x="{164 + wide:.1f}" y="{y + 15}">{count:,}</text>')
    return svg("".join(drawn), height=22 * len(top) + 4)


def world(view: View, places: pa.Table) -> str:
    """The events' places and some subscriptions' boxes, longitude right and latitude up."""
    batch = events_from_arrow(view.schema, view.vocabularies, places, key=None, on_error="skip")
    box = batch.columns.box
    box = box[np.isfinite(box).all(axis=1)]
    if not len(box):
        return "<p>No event has a place.</p>"
    point = (box[:, :2] + box[:, 2:]) / 2
    low, high = np.percentile(point, 1, axis=0), np.percentile(point, 99, axis=0)
    margin = np.maximum((high - low) * 0.05, 1e-6)
    low, high = low - margin, high + margin
    tall = WIDTH * float(np.clip((high[1] - low[1]) / ((high[0] - low[0]) * shrink(view, low, high)), 0.4, 1.2))

    def at(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return (xy - low) / (high - low) * [WIDTH, -tall] + [0, tall]

    drawn = [f'<rect width="{WIDTH}" height="{tall:.0f}" fill="none" stroke="var(--line)"/>']
    for corners in subscription_boxes(view):
        (x0, y1), (x1, y0) = at(corners[:2]), at(corners[2:])
        drawn.append(
            f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" fill="var(--bar)" fill-opacity=".05" '
            'stroke="var(--bar)" stroke-opacity=".3"/>'
        )
    drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="var(--mark)" fill-opacity=".5"/>' for x, y in at(point).tolist()]
    drawn.append(f'<text x="4" y="{tall - 5:.0f}">{low[0]:.4g}, {low[1]:.4g}</text>')
    drawn.append(f'<text x="{WIDTH - 4}" y="13" text-anchor="end">{high[0]:.4g}, {high[1]:.4g}</text>')
    return svg("".join(drawn), height=tall)


def shrink(view: View, low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """How much shorter a degree of longitude is there than one of latitude; 1 in a plane."""
    place = view.schema[view.schema.place or ""]
    return 1.0 if isinstance(place, Place) and place.plane else float(np.cos(np.radians((low[1] + high[1]) / 2)))


def subscription_boxes(view: View) -> NDArray[np.float64]:
    """Boxes of a spread of the largest segment's clauses."""
    segment = max(view.segments, key=len, default=None)
    if segment is None:
        return np.empty((0, 4))
    box = segment.segment.columns().box
    box = box[np.isfinite(box).all(axis=1)]
    return box[:: max(1, len(box) // BOXES)]
