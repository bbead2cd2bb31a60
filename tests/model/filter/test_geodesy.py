"""Circles on the globe: boxes lose nothing, distances agree with known ones and with dense sampling."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import FilterError
from tidings.model.filter.clause import touches
from tidings.model.filter.compile import compile_filter, compile_residue
from tidings.model.filter.geodesy import EARTH_RADIUS, circle_box, distance, distance_to_box, within
from tidings.model.values.schema import Number, Place, Schema

GLOBE = Schema({"place": Place(), "price": Number()})
PLANE = Schema({"place": Place(plane=True)})

longitudes = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0, 179.9999999, 0.0])
latitudes = st.floats(-90, 90) | st.sampled_from([-90.0, 90.0, 89.9999, 0.0])
points = st.tuples(longitudes, latitudes)
radii = st.floats(0, 3e7) | st.sampled_from([0.0, 1.0, 1000.0, 1e6])


def test_known_distances():
    quarter = math.pi / 2 * EARTH_RADIUS
    assert distance((0, 0), (90, 0)) == pytest.approx(quarter)
    assert distance((0, 0), (180, 0)) == pytest.approx(2 * quarter)
    assert distance((-179.5, 0), (179.5, 0)) == pytest.approx(quarter / 90)
    assert distance((17, 90), (-80, 0)) == pytest.approx(quarter)
    assert distance((121.4737, 31.2304), (116.4074, 39.9042)) == pytest.approx(1_067_300, rel=2e-3), "Shanghai to Beijing"


@given(points, radii, points)
def test_a_box_holds_every_point_within(centre, radius, point):
    if distance(centre, point) <= radius:
        assert any(touches(box, (*point, *point)) for box in circle_box(centre, radius))


@given(points, st.floats(0, 2e6), st.floats(0, 2 * math.pi), st.floats(0, 1))
def test_a_box_holds_points_made_inside(centre, radius, bearing, share):
    angle, y = radius * share / EARTH_RADIUS, math.radians(centre[1])
    latitude = math.asin(max(-1, min(1, math.sin(y) * math.cos(angle) + math.cos(y) * math.sin(angle) * math.cos(bearing))))
    east = math.atan2(math.sin(bearing) * math.sin(angle) * math.cos(y), math.cos(angle) - math.sin(y) * math.sin(latitude))
    longitude = (centre[0] + math.degrees(east) + 540) % 360 - 180
    point = (longitude, math.degrees(latitude))
    assert any(touches(box, (*point, *point)) for box in circle_box(centre, radius + 1e-3))


def test_boxes_near_the_meridian_and_the_poles():
    assert len(circle_box((179.99, 0), 5000)) == 2
    assert len(circle_box((-180, 10), 1)) == 2
    assert len(circle_box((179.9, 0), 5000)) == 1
    ((west, south, east, north),) = circle_box((10, 89.99), 5000)
    assert (west, east, north) == (-180, 180, 90)
    assert south == pytest.approx(89.945, abs=1e-3)
    ((west, south, east, north),) = circle_box((0, 60), 1000)
    assert east - west == pytest.approx(2 * (north - south), rel=1e-3), "a degree of longitude is half as long at 60 degrees"


@given(points, st.tuples(longitudes, longitudes), st.tuples(latitudes, latitudes))
def test_no_point_of_a_box_is_nearer_than_its_distance(point, xs, ys):
    box = (min(xs), min(ys), max(xs), max(ys))
    nearest = distance_to_box(point, box)
    for i in range(9):
        for j in range(9):
            inside = (box[0] + (box[2] - box[0]) * i / 8, box[1] + (box[3] - box[1]) * j / 8)
            assert nearest <= distance(point, inside) + 1e-6 * EARTH_RADIUS


@given(points, points, radii)
def test_within_is_the_distance(centre, point, radius):
    values = {"place": (*point, *point)}
    held = any(clause.holds(GLOBE, values) for clause in within(GLOBE, centre, radius))
    assert held == (distance_to_box(centre, (*point, *point)) <= radius)


def test_within_in_the_plane():
    (clause,) = within(PLANE, (1.0, 1.0), 5.0)
    assert clause.holds(PLANE, {"place": (4.0, 5.0, 4.0, 5.0)})
    assert not clause.holds(PLANE, {"place": (4.5, 5.0, 4.5, 5.0)})
    assert clause.holds(PLANE, {"place": (4.0, 5.0, 9.0, 9.0)})
    assert not clause.holds(PLANE, {})


@pytest.mark.parametrize(("point", "metres"), [((200.0, 0.0), 5), ((0.0, 91.0), 5), ((0.0, 0.0), -1), ((math.nan, 0.0), 5)])
def test_refusals(point, metres):
    with pytest.raises(FilterError):
        within(GLOBE, point, metres)


def test_a_topic_without_a_place_is_refused():
    with pytest.raises(FilterError, match="no Place"):
        within(Schema({"price": Number()}), (0.0, 0.0), 5)


@pytest.mark.parametrize(
    ("length", "metres"), [("500, 'm'", 500.0), ("2, 'km'", 2000.0), ("1, 'mi'", 1609.344), ("500", 500.0), ("0.5, 'KM'", 500.0)]
)
def test_a_filter_may_ask_for_a_circle(length, metres):
    asked = compile_filter(GLOBE, f"S_DWITHIN(place, POINT(13.4 52.5), {length}) AND price < 5")
    boxes, (residue,) = [clause.box for clause in asked], asked[0].residue
    (whole,) = within(GLOBE, (13.4, 52.5), metres)
    assert boxes == [whole.box]
    assert residue == whole.residue[0] == compile_residue(GLOBE, residue.source)


@pytest.mark.parametrize("point", [(13.4, 52.5), (13.41, 52.5), (0.0, 0.0)])
def test_what_is_not_in_a_circle_is_outside(point):
    box = {"place": (*point, *point)}
    inside, outside = (
        any(clause.holds(GLOBE, box) for clause in compile_filter(GLOBE, f"{no}S_DWITHIN(place, POINT(13.4 52.5), 500, 'm')"))
        for no in ("", "NOT ")
    )
    assert inside is not outside


@pytest.mark.parametrize(
    "args",
    ["place, POINT(0 0)", "price, POINT(0 0), 5", "place, 3, 5", "place, POINT(0 0), 5, 'ell'", "place, POINT(0 0), -5, 'm'"],
)
def test_a_malformed_circle_is_refused(args):
    with pytest.raises(FilterError):
        compile_filter(GLOBE, f"S_DWITHIN({args})")
