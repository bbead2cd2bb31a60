"""What a window keeps: a day of offers, and which of them a list of two hears of, entered or promoted, from a real topic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import tidings as td
from docs.figures.canvas import BLUE, GREEN, INK, ORANGE, SOFT, sheet, svg

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
OFFERS = ((1, 700), (2, 450), (4, 820), (5, 520), (7, 380), (9, 640), (10, 300), (14, 560), (15, 480), (17, 610), (18, 350))
HOURS, K = 6, 2


def told() -> tuple[dict[int, td.Notification], dict[int, list[int]]]:
    """What ann hears of each offer, by its hour; and the hours for which it stood in her list."""
    offers, price = td.Topic("offers", {"price": td.Number()}), dict(OFFERS)
    offers.subscribe("ann", k=K, window=f"{HOURS} hours", by="-price", time=BEGIN)
    why: dict[int, td.Notification] = {}
    stood: dict[int, list[int]] = {hour: [] for hour in price}
    for hour in range(1, 24):
        now = BEGIN + timedelta(hours=hour)
        notes = offers.publish({"id": str(hour), "price": price[hour]}, time=now) if hour in price else offers.advance(now)
        why |= {int(note.event): note for note in notes}
        for match in offers.top("ann", time=now):
            stood[int(match.event)].append(hour)
    return why, stood


def draw() -> str:
    price = dict(OFFERS)
    why, stood = told()
    figure, (axes,) = sheet(7.2, 3.8)
    for hour, at in OFFERS:
        note = why.get(hour)
        colour = SOFT if note is None else ORANGE if note.why == "entered" else GREEN
        axes.plot([hour, hour + HOURS], [at, at], color=colour, lw=1.2, alpha=0.5)
        for since in stood[hour]:
            axes.plot([since, since + 1], [at, at], color=colour, lw=4, alpha=0.55, solid_capstyle="butt")
        if note is not None and note.why == "promoted":
            heard = (note.at - BEGIN) / timedelta(hours=1)
            axes.annotate("promoted", (heard, at), (heard + 0.1, at + 18), fontsize=8, color=INK)
        axes.plot([hour], [at], "o", color=colour, ms=6)
        axes.text(hour - 0.25, at + 14, str(price[hour]), fontsize=8, ha="right")
    axes.axvspan(13 - HOURS, 13, color=BLUE, alpha=0.1, lw=0)
    axes.text(13 - HOURS / 2, 905, f"the last {HOURS} hours, at 13:00", ha="center", fontsize=8.5)
    axes.set(xlim=(0, 24), ylim=(240, 950), xlabel="hour", ylabel="price", xticks=range(0, 25, 3))
    for colour, label in ((ORANGE, "entered when published"), (GREEN, "promoted when a better one left"), (SOFT, "never told")):
        axes.plot([], [], "o-", color=colour, label=label)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return svg(figure)
