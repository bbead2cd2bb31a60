"""The report's drawings as inline SVG: bars, a ranking, a list over time; drawn for a phone's width, enlarged by a screen."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tidings.match.answers.results import instant
from tidings.spark.job.stories import Span

WIDTH, HEIGHT = 480, 180
LEFT = 52
MINUTE = 60_000_000


def svg(inside: str, what: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(what)}">{inside}</svg>'


def text(x: float, y: float, said: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{html.escape(said)}</text>'


def rect(x: float, y: float, wide: float, tall: float, kind: str, title: str = "") -> str:
    inside = f"<title>{html.escape(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0.5):.1f}" height="{max(tall, 0.5):.1f}" class="{kind}">{inside}</rect>'
    )


def line(x0: float, y0: float, x1: float, y1: float, kind: str = "axis") -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="{kind}"/>'


def bars(values: Sequence[float], what: str, warm_from: int = 0) -> str:
    """A bar for each micro-batch; those before `warm_from` are paler."""
    if not values:
        return "<p>Nothing ran.</p>"
    high, base = max(max(values), 1e-9), HEIGHT - 24
    step = (WIDTH - LEFT - 4) / len(values)
    drawn = [line(LEFT, base, WIDTH, base)]
    for share in (0.5, 1.0):
        y = base - share * (base - 16)
        drawn += [line(LEFT, y, WIDTH, y, "axis dashed"), text(LEFT - 6, y + 4, f"{share * high:,.4g}", "end")]
    every = max(1, -(-len(values) // 12))
    for place, value in enumerate(values):
        x, tall = LEFT + 4 + place * step, value / high * (base - 16)
        kind = "bar" if place >= warm_from else "bar pale"
        drawn.append(rect(x, base - tall, step - 2, tall, kind, f"micro-batch {place}: {value:,.4g}"))
        if place % every == 0:
            drawn.append(text(x + step / 2 - 1, HEIGHT - 7, str(place), "middle"))
    return svg("".join(drawn), what)


def ranking(top: Sequence[tuple[str, int]], what: str) -> str:
    high, row = max(count for _, count in top), 24
    drawn = []
    for place, (name, count) in enumerate(top):
        y, wide = row * place, count / high * (WIDTH - 200)
        drawn += [text(120, y + 16, name[:16], "end"), rect(128, y + 4, wide, 15, "bar"), text(134 + wide, y + 16, f"{count:,}")]
    return svg("".join(drawn), what, height=row * len(top) + 4)


def over_time(spans: Sequence[Span], what: str) -> str:
    """What stood in a list from when to when: time to the right, a row for each event, the better the higher."""
    begin, end = min(span.begin for span in spans), max(span.end for span in spans)
    best_first = sorted(spans, key=lambda span: (-span.relevance, span.begin))
    row = min(14.0, 300 / len(spans))
    tall = row * len(spans) + 44

    def x(time: int) -> float:
        return LEFT + (time - begin) / max(end - begin, 1) * (WIDTH - LEFT - 6)

    drawn = [line(LEFT, tall - 22, WIDTH, tall - 22)]
    ends = {0, len(spans) - 1}
    drawn += [text(LEFT - 6, 16 + place * row, f"{best_first[place].relevance:.4g}", "end") for place in ends]
    step = next(m * MINUTE for m in (1, 5, 10, 30, 60, 360, 1440, 10**9) if (end - begin) / (m * MINUTE) <= 6)
    for time in range(-(-begin // step) * step, end, step):
        drawn += [line(x(time), 8, x(time), tall - 22, "axis dashed"), text(x(time), tall - 7, f"{instant(time):%H:%M}", "middle")]
    for place, span in enumerate(best_first):
        y = 12 + place * row
        said = f"{span.event}, {span.relevance:g}: {instant(span.begin):%H:%M:%S} to {instant(span.end):%H:%M:%S}"
        drawn.append(rect(x(span.begin), y - row / 3, x(span.end) - x(span.begin), row * 2 / 3, "span", said))
        drawn.append(line(x(span.begin), y - row / 2, x(span.begin), y + row / 2, "told"))
    return svg("".join(drawn), what, height=tall)
