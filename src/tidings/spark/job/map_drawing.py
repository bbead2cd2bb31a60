"""The report's maps: events as points, places of subscriptions as boxes, coasts and borders where somebody gives them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.durable.manifest_view import View
from tidings.model.values.schema import Place
from tidings.spark.job.drawings import WIDTH, rect, svg, text
from tidings.spark.job.land import Bounds, Land, Lines
from tidings.spark.job.stories import ListStory

BOXES, POINTS = 250, 1500


class Sheet:
    """Bounds of a map and where a point lies on it: longitude right and latitude up, as broad as `WIDTH`."""

    def __init__(self, low: NDArray[np.float64], high: NDArray[np.float64], plane: bool) -> None:
        self.low, self.high = low, high
        shrink = 1.0 if plane else float(np.cos(np.radians((low[1] + high[1]) / 2)))
        self.tall = WIDTH * float(np.clip((high[1] - low[1]) / ((high[0] - low[0]) * shrink), 0.4, 1.2))

    @property
    def bounds(self) -> Bounds:
        return (*self.low.tolist(), *self.high.tolist())

    def at(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return (xy - self.low) / (self.high - self.low) * [WIDTH, -self.tall] + [0, self.tall]

    def box(self, corners: NDArray[np.float64], kind: str) -> str:
        (x0, y1), (x1, y0) = self.at(corners[:2]), self.at(corners[2:])
        return rect(x0, y0, x1 - x0, y1 - y0, kind)

    def lines(self, lines: Iterable[NDArray[np.float64]], kind: str) -> str:
        paths = ("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in self.at(one).tolist()) for one in lines)
        return f'<path d="{"".join(paths)}" class="{kind}"/>'

    def points(self, xy: NDArray[np.float64], kind: str, r: float) -> str:
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>' for x, y in self.at(xy).tolist())
        return f'<g class="{kind}">{dots}</g>'

    def drawn(self, layers: Iterable[str], what: str) -> str:
        corners = [
            text(4, self.tall - 6, f"{self.low[0]:.4g}, {self.low[1]:.4g}"),
            text(WIDTH - 4, 14, f"{self.high[0]:.4g}, {self.high[1]:.4g}", "end"),
        ]
        return svg("".join([*layers, *corners]), what, height=self.tall)


def overview(view: View, places: pa.Table, story: ListStory | None, land: Land | None) -> str:
    """Where events were and who waits for them; the subscription of the story stands out."""
    point = points_of(view, places)
    if not len(point):
        return "<p>No event has a place.</p>"
    low, high = np.percentile(point, 1, axis=0), np.percentile(point, 99, axis=0)
    margin = np.maximum((high - low) * 0.08, 1e-6)
    sheet = Sheet(low - margin, high + margin, is_plane(view))
    layers = [*ground(sheet, view, land), *(sheet.box(box, "box") for box in subscription_boxes(view))]
    layers.append(sheet.points(point[:POINTS], "event", 1.3))
    if story is not None and story.box is not None:
        x, y = sheet.at((np.array(story.box[:2]) + story.box[2:]) / 2)
        layers.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="13" class="ring"/>')
        side, anchor = (x + 18, "start") if x < WIDTH * 0.7 else (x - 18, "end")
        layers.append(text(side, y + 4, story.subscription.id, anchor, "strong"))
    return sheet.drawn(layers, "map of events and subscriptions")


def close_up(view: View, story: ListStory, places: pa.Table, land: Land | None) -> str:
    """One subscription's place, what was offered around it, and what it heard of."""
    assert story.box is not None
    box = np.array(story.box)
    margin = np.maximum((box[2:] - box[:2]) * 0.6, 1e-6)
    sheet = Sheet(box[:2] - margin, box[2:] + margin, is_plane(view))
    around = points_of(view, places)
    near = around[((around >= sheet.low) & (around <= sheet.high)).all(axis=1)]
    layers = [*ground(sheet, view, land), sheet.points(near, "event", 2), sheet.box(box, "chosen")]
    return sheet.drawn([*layers, sheet.points(story.points, "heard", 4)], f"map of {story.subscription.id}")


def ground(sheet: Sheet, view: View, land: Land | None) -> list[str]:
    empty = rect(0, 0, WIDTH, sheet.tall, "ground")
    if land is None or is_plane(view):
        return [empty]
    lines: Lines = land(sheet.bounds)
    return [empty, sheet.lines(lines.coasts, "coast"), sheet.lines(lines.borders, "border")]


def points_of(view: View, places: pa.Table) -> NDArray[np.float64]:
    """The middles of the places; the other columns of an event are not needed to read one."""
    box = view.read(places.append_column(view.key or "id", pa.array(map(str, range(len(places))))), "skip").columns.box
    box = box[np.isfinite(box).all(axis=1)]
    middle: NDArray[np.float64] = (box[:, :2] + box[:, 2:]) / 2
    return middle


def is_plane(view: View) -> bool:
    place = view.schema[view.schema.place or ""]
    return isinstance(place, Place) and place.plane


def subscription_boxes(view: View) -> NDArray[np.float64]:
    """Boxes of a spread of the largest segment's clauses."""
    segment = max(view.segments, key=len, default=None)
    if segment is None:
        return np.empty((0, 4))
    box = segment.segment.columns().box
    box = box[np.isfinite(box).all(axis=1)]
    return box[:: max(1, len(box) // BOXES)]
