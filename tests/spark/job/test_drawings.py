"""The report's drawings: a row for each event of a list, in order; bars that say which are warm; nothing that HTML would read."""

from __future__ import annotations

from xml.etree import ElementTree

from tidings.spark.job.drawings import MINUTE, bars, over_time, ranking
from tidings.spark.job.stories import Span


def test_a_list_has_a_row_for_each_event_the_better_the_higher():
    spans = [Span("a", -30.0, 0, 5 * MINUTE), Span("b", -10.0, MINUTE, 3 * MINUTE), Span("<c>", -20.0, MINUTE, 9 * MINUTE)]
    drawn = ElementTree.fromstring(over_time(spans, "a list"))
    rows = [(float(rect.attrib["y"]), "".join(rect.itertext()).split(",")[0]) for rect in drawn.iter("rect")]
    assert [name for _, name in sorted(rows)] == ["b", "<c>", "a"]
    assert len(list(drawn.iter("line"))) >= 3, "a mark for each telling"


def test_bars_are_paler_while_it_warms_up():
    drawn = ElementTree.fromstring(bars([1.0, 4.0, 5.0], "events a second", warm_from=1))
    assert [rect.attrib["class"] for rect in drawn.iter("rect")] == ["bar pale", "bar", "bar"]
    assert bars([], "nothing") == "<p>Nothing ran.</p>"


def test_names_are_text():
    drawn = ElementTree.fromstring(ranking([("<script>", 3), ("ann", 2)], "most told"))
    assert "<script>" in [text.text for text in drawn.iter("text")]
