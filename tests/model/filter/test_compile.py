import json
import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Category, Number, Place, Schema, Time, Words
from tidings.errors import FilterError, NeverMatchesWarning
from tidings.model.door.subscription_record import clause_to_record
from tidings.model.filter.clause import Clause, above, below
from tidings.model.filter.compile import compile_filter, compile_residue
from tidings.model.filter.like import like_matcher
from tidings.model.filter.normal_form import conjoin_all
from tidings.model.filter.operands import compile_number
from tidings.model.filter.syntax import parse_filter
from tidings.model.values.times import parse_time

SCHEMA = Schema(
    {
        "price": Number(0, 10_000),
        "stars": Number(),
        "brand": Category(),
        "made": Time(),
        "sold": Time(),
        "place": Place(),
        "about": Words(),
        "shop": Place(),
        "tags": Words("as-is"),
    }
)
PLANE = Schema({"at": Place(plane=True)})
DAY = 86_400_000_000
NEW_YEAR = parse_time("2026-01-01")


def only(text, schema=SCHEMA):
    (clause,) = compile_filter(schema, text)
    return clause


def holds(text, **values):
    return any(clause.holds(SCHEMA, values) for clause in compile_filter(SCHEMA, text))


def test_the_filter_of_the_design():
    clause = only(
        "price <= 3300 AND brand = 'Huawei' AND A_CONTAINS(about, ('p30')) "
        "AND S_INTERSECTS(place, BBOX(121.40, 36.10, 121.48, 36.20))"
    )
    assert clause == Clause(
        ranges={"price": (-math.inf, 3300.0)},
        within={"brand": frozenset({"Huawei"})},
        box=(121.40, 36.10, 121.48, 36.20),
        words=frozenset({"p30"}),
    )


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("price = 3", [(3, 3)]),
        ("3 < price", [(above(3), math.inf)]),
        ("price < 3", [(-math.inf, below(3))]),
        ("NOT price < 3", [(3, math.inf)]),
        ("price <> 3", [(-math.inf, below(3)), (above(3), math.inf)]),
        ("NOT price <> 3", [(3, 3)]),
        ("price BETWEEN 1 AND 2", [(1, 2)]),
        ("price NOT BETWEEN 1 AND 2", [(-math.inf, below(1)), (above(2), math.inf)]),
        ("price IN (2, 1, 2)", [(1, 1), (2, 2)]),
        ("price NOT IN (1, 2)", [(-math.inf, below(1)), (above(1), below(2)), (above(2), math.inf)]),
        ("price >= 2 AND price <= 2 * (3 + 1)", [(2, 8)]),
        ("price > 7 div 2", [(above(3), math.inf)]),
    ],
)
def test_number_intervals(text, spans):
    assert [clause.ranges["price"] for clause in compile_filter(SCHEMA, text)] == spans


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("made > TIMESTAMP('2026-01-01T00:00:00Z')", [(NEW_YEAR + 1, math.inf)]),
        ("made < '2026-01-01T00:00:00Z'", [(-math.inf, NEW_YEAR - 1)]),
        ("made = DATE('2026-01-01')", [(NEW_YEAR, NEW_YEAR + DAY - 1)]),
        ("made = '2026-01-01'", [(NEW_YEAR, NEW_YEAR + DAY - 1)]),
        ("made > DATE('2026-01-01')", [(NEW_YEAR + DAY, math.inf)]),
        ("made <= DATE('2026-01-01')", [(-math.inf, NEW_YEAR + DAY - 1)]),
        ("made <> DATE('2026-01-01')", [(-math.inf, NEW_YEAR - 1), (NEW_YEAR + DAY, math.inf)]),
        ("made BETWEEN DATE('2026-01-01') AND DATE('2026-01-02')", [(NEW_YEAR, NEW_YEAR + 2 * DAY - 1)]),
        ("T_AFTER(made, DATE('2026-01-01'))", [(NEW_YEAR + DAY, math.inf)]),
        ("T_BEFORE(DATE('2026-01-01'), made)", [(NEW_YEAR + DAY, math.inf)]),
        ("T_DURING(made, INTERVAL('2026-01-01', '2026-01-01'))", [(NEW_YEAR + 1, NEW_YEAR + DAY - 1)]),
        ("T_DURING(made, INTERVAL('..', '2026-01-01T00:00:00Z'))", [(-math.inf, NEW_YEAR - 1)]),
        ("T_EQUALS(made, DATE('2026-01-01'))", [(NEW_YEAR, NEW_YEAR + DAY - 1)]),
        ("NOT T_INTERSECTS(made, DATE('2026-01-01'))", [(-math.inf, NEW_YEAR - 1), (NEW_YEAR + DAY, math.inf)]),
        ("NOT T_INTERSECTS(made, INTERVAL('2026-01-01', '..'))", [(-math.inf, NEW_YEAR - 1)]),
    ],
)
def test_time_intervals(text, spans):
    assert [clause.ranges["made"] for clause in compile_filter(SCHEMA, text)] == spans


def test_categories_become_sets():
    assert only("brand IN ('a', 'b') AND brand <> 'a'") == Clause(within={"brand": frozenset("b")})
    assert only("brand = 'a' OR brand = 'b' OR brand IN ('c')") == Clause(within={"brand": frozenset("abc")})
    assert only("brand <> 'a' AND NOT brand = 'b'") == Clause(without={"brand": frozenset("ab")})
    assert only("brand LIKE 'exact'") == Clause(within={"brand": frozenset({"exact"})})


def test_nulls_and_presence():
    assert only("price IS NULL AND brand IS NOT NULL") == Clause(nulls=frozenset({"price"}), present=frozenset({"brand"}))
    assert only("brand IS NOT NULL AND brand = 'a'") == Clause(within={"brand": frozenset("a")})
    assert holds("shop IS NULL", price=1.0)
    assert not holds("shop IS NOT NULL", price=1.0)


def test_words_are_tokenised_as_events_are():
    assert only("A_CONTAINS(about, ('New Phone', 'P30'))").words == {"new", "phone", "p30"}
    assert [c.words for c in compile_filter(SCHEMA, "A_OVERLAPS(about, ('New Phone', 'P30'))")] == [{"new", "phone"}, {"p30"}]
    assert holds("A_CONTAINS(tags, ('New Phone'))", tags=frozenset({"New Phone"}))


def test_a_second_place_or_words_is_residue():
    for text in ("S_INTERSECTS(shop, BBOX(0, 0, 1, 1))", "A_CONTAINS(tags, ('a'))"):
        clause = only(text)
        assert (clause.box, clause.words, len(clause.residue)) == (None, frozenset(), 1)


def test_a_rectangle_or_a_point_is_a_box_alone():
    assert only("S_INTERSECTS(place, POINT(1 2))") == Clause(box=(1.0, 2.0, 1.0, 2.0))
    assert only("S_INTERSECTS(place, POLYGON((0 0, 2 0, 2 1, 0 1, 0 0)))") == Clause(box=(0.0, 0.0, 2.0, 1.0))
    assert only("NOT S_DISJOINT(place, BBOX(0, 0, 2, 1))") == Clause(box=(0.0, 0.0, 2.0, 1.0))


def test_the_180th_meridian():
    text = "S_INTERSECTS(place, BBOX(170, -10, -170, 10))"
    assert [c.box for c in compile_filter(SCHEMA, text)] == [(170.0, -10.0, 180.0, 10.0), (-180.0, -10.0, -170.0, 10.0)]
    for relation in ("S_INTERSECTS", "S_WITHIN"):
        text = f"{relation}(place, BBOX(170, -10, -170, 10))"
        assert [holds(text, place=(x, 0.0, x, 0.0)) for x in (175.0, -175.0, 0.0)] == [True, True, False]
    assert holds("NOT S_INTERSECTS(place, BBOX(170, -10, -170, 10))", place=(0.0, 0.0, 0.0, 0.0))


def test_two_boxes_are_not_their_common_part():
    text = "S_INTERSECTS(place, BBOX(0, 0, 1, 1)) AND S_INTERSECTS(place, BBOX(3, 0, 5, 1))"
    clause = only(text)
    assert clause.box == (0.0, 0.0, 1.0, 1.0)
    assert holds(text, place=(1.0, 0.0, 3.0, 1.0))
    assert not holds(text, place=(1.0, 0.0, 2.0, 1.0))


def test_negation_needs_the_attribute():
    for text in (
        "price > 5",
        "brand LIKE 'a%'",
        "price * 2 > 3",
        "A_CONTAINS(about, ('a'))",
        "S_INTERSECTS(place, BBOX(0, 0, 1, 1))",
    ):
        assert not holds(text)
        assert not holds(f"NOT ({text})")


def test_arithmetic_without_an_answer_holds_neither_way():
    for text in (
        "price / stars = 1",
        "price % stars = 1",
        "price div stars = 1",
        "(price - 1) ^ 0.5 > 0",
        "(price + 2) ^ 5000 > 0",
    ):
        assert not holds(text, price=0.0, stars=0.0)
        assert not holds(f"NOT ({text})", price=0.0, stars=0.0)


@pytest.mark.parametrize(
    "text", ["price > 5 AND price < 3", "1 = 2", "price IS NULL AND price > 3", "NOT TRUE", "brand = 'a' AND brand = 'b'"]
)
def test_what_can_never_match_is_accepted_and_said(text):
    with pytest.warns(NeverMatchesWarning, match="can never match"):
        assert compile_filter(SCHEMA, text) == []


def test_true_is_everything():
    assert only("TRUE") == only("price > 3 OR TRUE") == only("1 < 2") == Clause()


def test_too_many_clauses_fall_back_to_residue_and_then_are_refused():
    unequal = " AND ".join(f"price <> {n}" for n in range(100))
    (clause,) = compile_filter(SCHEMA, unequal)
    assert len(clause.residue) == 100
    assert holds(unequal, price=0.5)
    assert not holds(unequal, price=99.0)
    many = ", ".join(map(str, range(1000)))
    assert only(f"price IN ({many})").ranges == {"price": (0.0, 999.0)}
    crossed = " AND ".join(f"(price > {n} OR stars > {n})" for n in range(7))
    with pytest.raises(FilterError, match="more than 64 clauses"):
        compile_filter(SCHEMA, crossed)
    assert len(compile_filter(SCHEMA, crossed, limit=128)) <= 128


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colour = 1", "attribute 'colour' is not in the schema: it has price"),
        ("price = 'x'", "attribute 'price' takes a number, not 'x'"),
        ("'x' = price", "attribute 'price' takes a number, not 'x'"),
        ("brand = 3", "attribute 'brand' takes a string, not 3.0"),
        ("brand IN ('a', 3)", "attribute 'brand' takes a string, not 3.0"),
        ("made > 3", "attribute 'made' takes a TIMESTAMP, a DATE or an ISO 8601 string, not 3.0"),
        ("made > 'soon'", "attribute 'made': 'soon' is not a time"),
        ("made > TIMESTAMP('2026-01-01T00:00:00.1234567Z')", "finer than a microsecond"),
        ("made > price", "attribute 'made' takes a TIMESTAMP"),
        ("about = 'x'", "operator '=' does not apply to 'about', a Words"),
        ("price", "attribute 'price' is not a predicate"),
        ("price = NULL", "cannot compare with NULL"),
        ("price = TRUE", "takes a number, not True"),
        ("price = 1e400", "a finite number is accepted"),
        ("price = 1 / 0", "divides by zero"),
        ("avg(price) > 3", "operator 'avg'"),
        ("nearby(price)", "operator 'nearby' is not known"),
        ("brand + 1 > 2", "attribute 'brand' is a Category and cannot stand in arithmetic"),
        ("S_INTERSECTS(price, POINT(1 2))", "operator 's_intersects' takes a Place, and attribute 'price' is a Number"),
        ("S_INTERSECTS(place, BBOX(0, 0, 181, 1))", "longitude outside"),
        ("S_INTERSECTS(place, POINT(0 91))", "latitude outside"),
        ("S_INTERSECTS(place, BBOX(0, 1, 1, 0))", "min > max"),
        ("S_INTERSECTS(place, BBOX(0, 1, 1))", "four numbers"),
        ("S_INTERSECTS(place, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))", "not valid: Self-intersection"),
        ("S_INTERSECTS(place, POLYGON((0 0, 1 1)))", "cannot be read"),
        ("A_CONTAINS(about, ('...'))", "'...' holds no word"),
        ("A_CONTAINS(about, (1, 2))", "takes strings, not 1.0"),
        ("brand LIKE 'a\\'", "escape character"),
        ("T_DURING(made, INTERVAL('2026-01-02', '2026-01-01'))", "ends before it begins"),
        ("price > 3 AND", "does not parse at line 1, column 14"),
        ("", "empty"),
        (7, "type int"),
        ({"op": "=", "args": [{"property": "price"}]}, "operator '=' takes 2 operands, not 1"),
        ({"op": "=", "args": [{"property": "price"}, math.nan]}, "finite"),
        ({"op": "=", "args": [{"property": "price"}, 10**400]}, "a number that a float64 can hold"),
        ({"op": 3}, "not CQL2 JSON"),
        ('{"op": "=", "args": [{"property": "é"}, ', "broken JSON at byte 41"),
        ('{"op": "=", "args": [{"property": "price"}, NaN]}', "holds NaN"),
    ],
)
def test_refused_in_one_sentence(text, sentence):
    with pytest.raises(FilterError, match=sentence) as refusal:
        compile_filter(SCHEMA, text)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_a_plane_has_no_meridian_and_no_poles():
    assert only("S_INTERSECTS(at, BBOX(0, 500, 1000, 501))", PLANE).box == (0.0, 500.0, 1000.0, 501.0)
    with pytest.raises(FilterError, match="min > max"):
        compile_filter(PLANE, "S_INTERSECTS(at, BBOX(1, 0, 0, 1))")


def nested_json(levels):
    tree = {"op": "=", "args": [{"property": "price"}, 1]}
    for _ in range(levels - 1):
        tree = {"op": "not", "args": [tree]}
    return tree


def alternating_json(levels):
    tree = {"op": "=", "args": [{"property": "price"}, 1]}
    for level in range(levels - 1):
        tree = {"op": "or", "args": [tree, False]} if level % 2 else {"op": "and", "args": [tree, True]}
    return tree


@pytest.mark.parametrize(
    "source",
    [
        "(" * 201 + "price = 1" + ")" * 201,
        "NOT " * 5_000 + "price = 1",
        "price = " + "-" * 5_000 + "1",
        "+".join(["price"] * 5_000) + " = 1",
        " = ".join(["price"] * 5_000),
        "(" * 100_000,
        "casei(" * 1_000 + "brand" + ")" * 1_000 + " = 'a'",
        "price IN " + "(" * 40 + "1" + ", 1)" * 40,
        nested_json(201),
        json.dumps(nested_json(201)),
        "[" * 100_000,
        '{"op": "not", "args": [' * 40_000,
    ],
    ids=lambda source: str(source)[:12],
)
def test_too_deep_is_a_sentence(source):
    with pytest.raises(FilterError, match=r"nests too deep|never closed"):
        compile_filter(SCHEMA, source)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 190 + "price = 1" + ")" * 190,
        "NOT " * 190 + "price = 1",
        nested_json(199),
        alternating_json(200),
        json.dumps(nested_json(199)),
        "price = 1" + " + 0" * 190,
        "((price = 1) AND " * 60 + "(TRUE)" + ")" * 60,
    ],
    ids=lambda source: str(source)[:12],
)
def test_deep_enough_is_compiled(source):
    assert {c.ranges["price"] for c in compile_filter(SCHEMA, source)} == {(1.0, 1.0)}


def test_groups_parsed_apart_mean_what_they_mean_together():
    inner = "price + (stars * (2 + 1)) > 3 OR brand IN ('a', '(b', 'c)') AND NOT (stars < (1))"
    padded = f"(((((((((((((({inner}))))))))))))))"
    assert compile_filter(SCHEMA, padded) == compile_filter(SCHEMA, inner)


def test_a_mistake_inside_many_parentheses_is_found_at_once():
    with pytest.raises(FilterError, match="does not parse"):
        compile_filter(SCHEMA, "(" * 60 + "price ==" + ")" * 60)


@pytest.mark.parametrize(
    ("source", "sentence"), [("x" * 10_000_000, "10000000 characters"), (" OR ".join(["price = 1"] * 3000), "2999 ANDs")]
)
def test_too_long_is_a_sentence(source, sentence):
    with pytest.raises(FilterError, match=sentence):
        compile_filter(SCHEMA, source)


def test_a_long_list_is_no_hardship():
    strings = ", ".join(f"'b{n}'" for n in range(20_000))
    assert len(only(f"brand IN ({strings})").within["brand"]) == 20_000


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("%", "", True),
        ("a%", "abc", True),
        ("%c", "abc", True),
        ("%b%", "abc", True),
        ("a%a", "a", False),
        ("a%a", "aa", True),
        ("%ab%ab%", "abab", True),
        ("%ab%ab%", "abxb", False),
        ("_b_", "abc", True),
        ("%_c", "c", False),
        (r"10\%", "10%", True),
        (r"10\%", "100", False),
        ("a.c", "abc", False),
        ("a%c", "a\n\nc", True),
        ("a", "a\n", False),
        ("%a%a%a%a%a%a%a%a%b", "a" * 5_000, False),
    ],
)
def test_like(pattern, text, matches):
    assert like_matcher(pattern)(text) is matches


def test_case_and_accents():
    assert holds("CASEI(brand) = CASEI('STRASSE')", brand="straße")
    assert holds("ACCENTI(brand) LIKE ACCENTI('%barquer')", brand="débárquér")
    assert not holds("CASEI(brand) IN (CASEI('A'))", brand="b")


def test_a_residue_is_rebuilt_from_its_source():
    for text in (
        "NOT brand LIKE 'a%'",
        "S_WITHIN(place, BBOX(0, 0, 1, 1))",
        "T_DURING(INTERVAL(made, sold), INTERVAL('2026-01-01', '..'))",
    ):
        (residue,) = only(text).residue
        assert compile_residue(SCHEMA, residue.source) == residue
        assert compile_residue(SCHEMA, residue.source).attributes == residue.attributes


def test_an_interval_of_attributes():
    text = "T_DURING(INTERVAL(made, sold), INTERVAL('2026-01-01', '..'))"
    assert holds(text, made=NEW_YEAR + 1, sold=NEW_YEAR + 5)
    assert not holds(text, made=NEW_YEAR, sold=NEW_YEAR + 5)
    assert not holds(text, made=NEW_YEAR + 1)


@pytest.mark.parametrize(
    ("source", "value", "linear"),
    [
        ("-price", -3.0, (0.0, {"price": -1.0})),
        ("2*price + stars", 10.0, (0.0, {"price": 2.0, "stars": 1.0})),
        ("100 - (price - stars) / 2", 100.5, (100.0, {"price": -0.5, "stars": 0.5})),
        ("price * stars", 12.0, None),
        ("price ^ 2", 9.0, None),
        ("7 div 2", 3.0, (3.0, {})),
        ("price", 3.0, (0.0, {"price": 1.0})),
    ],
)
def test_numbers_for_ranking(source, value, linear):
    expression = compile_number(SCHEMA, source)
    assert expression.value({"price": 3.0, "stars": 4.0}) == value
    assert expression.linear == linear


def test_a_time_ranks_by_its_microseconds():
    expression = compile_number(SCHEMA, "-made")
    assert expression.attributes == {"made"}
    assert expression.value({"made": NEW_YEAR}) == -float(NEW_YEAR)


@pytest.mark.parametrize("source", ["brand", "price > 3", "price) = (3", "", "price +", "colour", "1 / 0", "price = 3 AND stars"])
def test_what_is_no_number_is_refused(source):
    with pytest.raises(FilterError):
        compile_number(SCHEMA, source)


def test_a_ranking_without_a_finite_answer_is_nan():
    assert math.isnan(compile_number(SCHEMA, "price / stars").value({"price": 1.0, "stars": 0.0}))
    assert math.isnan(compile_number(SCHEMA, "price / stars").value({"price": 1.0}))


PLAIN = (
    *("price < 2", "price <= 2.5", "price > 1", "price >= 1.5", "price = 2", "price BETWEEN 1 AND 2", "price BETWEEN 2 AND 1"),
    *("2 < price", "NOT price < 1", "price <> 1", "price IN (1, 2)", "brand = 'Acme'", "brand = 'Beta'", "brand IN ('Acme', 'x')"),
    *("A_CONTAINS(about, ('red', 'new'))", "A_CONTAINS(about, ('blue'))", "A_OVERLAPS(about, ('red', 'new'))"),
    *("S_INTERSECTS(place, BBOX(0, 0, 2, 2))", "S_INTERSECTS(place, BBOX(170, 0, -170, 2))", "S_INTERSECTS(place, POINT(1 1))"),
    *("made > TIMESTAMP('2026-01-01T00:00:00Z')", "stars IS NULL"),
)


@given(st.lists(st.sampled_from(PLAIN), min_size=2, max_size=5))
@settings(max_examples=150, deadline=None)
def test_a_conjunction_taken_in_one_pass_is_the_conjunction_of_its_leaves(leaves):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        parts = [compile_filter(SCHEMA, leaf) for leaf in leaves]
        whole = conjoin_all(SCHEMA, parts, 64)
        text = " AND ".join(leaves)
        for source in (text, parse_filter(text)):
            assert sorted(map(_told, compile_filter(SCHEMA, source))) == sorted(map(_told, whole))


def _told(clause):
    """A clause as text, in which the order of its parts does not count."""
    record = clause_to_record(clause)
    return json.dumps(record | {"residue": sorted(record.get("residue", []))}, sort_keys=True)


@pytest.mark.parametrize(
    "leaf",
    [
        {"op": "<", "args": [{"property": "price"}, math.nan]},
        {"op": "<", "args": [{"property": "price"}, 1.0, 2.0]},
        {"op": "<", "args": [{"property": "price"}]},
        {"op": "between", "args": [{"property": "price"}, 1.0, True]},
        {"op": "=", "args": [{"property": "brand"}, 1.0]},
        {"op": "=", "args": [{"property": ["brand"]}, "x"]},
        {"op": "s_intersects", "args": [{"property": "place"}, {"bbox": [0, 0, 1]}]},
        {"op": "s_intersects", "args": [{"property": "place"}, {"bbox": None}]},
        {"op": "a_contains", "args": [{"property": "about"}, [1]]},
        {"op": "<", "args": [{"property": "nothing"}, 1.0]},
        {"args": [{"property": "price"}, 1.0]},
    ],
)
def test_a_mistake_in_a_plain_conjunction_is_told(leaf):
    with pytest.raises(FilterError):
        compile_filter(SCHEMA, {"op": "and", "args": [{"op": "<", "args": [{"property": "stars"}, 1]}, leaf]})
