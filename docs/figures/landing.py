"""The drawing that moves: offers come to a town, boxes that match light up, a list of three changes. A real topic says who hears.

Every publication is a frame; CSS shows one after the other. Whoever asked for less motion sees the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape

import tidings as td
from docs.figures.canvas import BLUE, GREEN, ORANGE

BEGIN = datetime(2026, 11, 1, 8, tzinfo=UTC)
BEFORE = BEGIN - timedelta(hours=1)
SECONDS = 1.6
"""Of a frame; an hour of the run."""
TOWN, HEIGHT, WIDTH = 400, 330, 760
BOXES = {
    "ann": (0.5, 5.5, 4.5, 9.5, "price <= 500"),
    "bob": (3.0, 4.0, 7.5, 7.5, "kind = 'bike'"),
    "cat": (5.5, 0.8, 9.5, 4.8, "price <= 800"),
    "dan": (1.0, 1.0, 4.0, 4.6, "kind <> 'bike'"),
    "eve": (6.4, 6.0, 9.6, 9.4, "A_CONTAINS(about, ('red'))"),
}
OFFERS = (
    (2.0, 7.0, 450, "bike", "a red bike"),
    (6.8, 6.6, 620, "bike", "red, as new"),
    (3.2, 3.6, 380, "sofa", "grey sofa"),
    (8.0, 2.4, 760, "lamp", "a floor lamp"),
    (4.0, 6.5, 300, "bike", "for children"),
    (7.4, 8.2, 910, "sofa", "red leather"),
    (5.0, 5.0, 520, "bike", "with a basket"),
    (2.6, 1.8, 640, "lamp", "brass"),
    (6.2, 3.4, 410, "bike", "old and red"),
    (3.6, 8.6, 350, "sofa", "small"),
)
STYLE = """<style>
svg { --ink: #1d2126; --soft: #7d8590; --ground: #ffffff; --line: #c9ced6; font: 13px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e7eb; --soft: #8b949e; --ground: #16191f; --line: #3a414b; } }
text { fill: var(--ink); } .soft { fill: var(--soft); } .small { font-size: 11px; }
.box { fill: none; stroke: var(--line); stroke-width: 1.5; } .hit { fill: %s; fill-opacity: .28; stroke: %s; stroke-width: 2; }
.frame { opacity: 0; animation: %.2fs step-end infinite turn; }
@keyframes turn { 0%% { opacity: 1; } %.4f%% { opacity: 0; } 100%% { opacity: 0; } }
@media (prefers-reduced-motion: reduce) { .frame { animation: none; } .frame.last { opacity: 1; } }
</style>"""


@dataclass(frozen=True, slots=True)
class Frame:
    """What was said of one offer: who matched it, and the list of three after it with what entered."""

    offer: int
    heard: list[str]
    best: list[tuple[str, float]]
    entered: set[str]


def run() -> list[Frame]:
    schema = {"price": td.Number(), "kind": td.Category(), "about": td.Words(), "place": td.Place(plane=True)}
    offers = td.Topic("offers", schema)
    for name, (x0, y0, x1, y1, rest) in BOXES.items():
        offers.subscribe(name, f"{rest} AND S_INTERSECTS(place, BBOX({x0}, {y0}, {x1}, {y1}))", time=BEFORE)
    offers.subscribe("fay", k=3, window="6 hours", by="-price", time=BEFORE)
    frames = []
    for number, (x, y, price, kind, about) in enumerate(OFFERS):
        now = BEGIN + timedelta(hours=number)
        event = {"id": str(number), "price": price, "kind": kind, "about": about, "place": (x, y)}
        notes = [*offers.publish(event, time=now)]
        heard = sorted(note.subscription for note in notes if note.why == "matched")
        entered = {note.event for note in notes if note.subscription == "fay"}
        frames.append(Frame(number, heard, [(match.event, match.score) for match in offers.top("fay", time=now)], entered))
    return frames


def draw() -> str:
    frames = run()
    style = STYLE % (ORANGE, ORANGE, SECONDS * len(frames), 100 / len(frames))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
    title = "<title>Offers come one by one; whose box and filter match is told, and a list of the three cheapest changes</title>"
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="var(--ground)"/>'
    boxes = [rectangle(name, "box") + label(name) for name in BOXES]
    fay = words(TOWN + 30, 36, "fay: the 3 cheapest of the last 6 hours") + words(
        TOWN + 30, 56, 'k=3, window="6 hours", by="-price"', "soft small"
    )
    return "\n".join([head, title, style, ground, *boxes, fay, *(framed(frame, frames) for frame in frames), "</svg>", ""])


def framed(frame: Frame, frames: list[Frame]) -> str:
    begin = (frame.offer - len(frames)) * SECONDS
    last = " last" if frame is frames[-1] else ""
    drawn = [rectangle(name, "hit") for name in frame.heard]
    drawn += [dot(offer, 3, "var(--soft)") for offer in range(max(0, frame.offer - 5), frame.offer)]
    drawn += [dot(frame.offer, 6, BLUE), told(frame)]
    for place, (event, score) in enumerate(frame.best):
        new = event in frame.entered
        line = f"{place + 1}.  {-score:g}  {OFFERS[int(event)][4]}" + ("  (entered)" if new else "")
        drawn.append(words(TOWN + 30, 92 + 26 * place, line, colour=GREEN if new else None))
    return f'<g class="frame{last}" style="animation-delay: {begin:.1f}s">{"".join(drawn)}</g>'


def told(frame: Frame) -> str:
    _, _, price, kind, about = OFFERS[frame.offer]
    hour = (BEGIN + timedelta(hours=frame.offer)).strftime("%H:%M")
    heard = ", ".join(frame.heard) or "nobody by box"
    offer = words(TOWN + 30, 210, f"{hour}  a {kind} for {price}: {about}")
    return offer + words(TOWN + 30, 236, f"heard by {heard}", colour=ORANGE if frame.heard else None)


def across(x: float, y: float) -> tuple[float, float]:
    """A place of the town on the sheet; y goes up there and down here."""
    return 15 + x * (TOWN - 30) / 10, HEIGHT - 15 - y * (HEIGHT - 30) / 10


def rectangle(name: str, kind: str) -> str:
    x0, y0, x1, y1, _ = BOXES[name]
    (left, bottom), (right, top) = across(x0, y0), across(x1, y1)
    return f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" rx="4"/>'


def label(name: str) -> str:
    x0, _, _, y1, rest = BOXES[name]
    left, top = across(x0, y1)
    shown = rest.replace("A_CONTAINS(about, ('red'))", "'red'")
    return words(left + 6, top + 15, f"{name}: {shown}", "soft small")


def dot(offer: int, radius: float, colour: str) -> str:
    x, y = across(*OFFERS[offer][:2])
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def words(x: float, y: float, text: str, kind: str = "", colour: str | None = None) -> str:
    style = "" if colour is None else f' style="fill: {colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{style} xml:space="preserve">{escape(text, quote=False)}</text>'
