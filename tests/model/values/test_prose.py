"""Texts in a language against the oracle: stems, accents, phrases, prefixes, CJK, what is kept whole, and callables."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
import snowballstemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import prose as oracle
from tidings.errors import DroppedWarning, FilterError, SchemaError
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.columns.tables import batch_of, events_from_arrow
from tidings.model.columns.tokens import tokenize_array
from tidings.model.door.event import EventReader
from tidings.model.door.event_record import event_body, event_from_record, event_to_record
from tidings.model.filter.compile import compile_filter
from tidings.model.values.prose import analyser_of, stemmer_of
from tidings.model.values.schema import Schema, Words, languages

PIECES = [*"新東京都は。カー한국", *"aé#+*@_-, .İß", "merg", "merger", "Merging", "new", "New", "york", "C++", "#tag", "naïve"]
PIECES += ["internationalisations"]
TEXTS = st.lists(st.sampled_from([*PIECES, " ", " ", " "]), max_size=9).map("".join)
ANYTHING = st.one_of(TEXTS, TEXTS, TEXTS, st.text(max_size=8))
KINDS = [Words(language="english"), Words(language="any"), Words(keep="+#@"), Words(language="german", keep="+#")]

pytestmark = pytest.mark.filterwarnings("ignore::tidings.errors.DroppedWarning")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@settings(max_examples=400, deadline=None)
@given(kind=st.sampled_from(KINDS), element=TEXTS, texts=st.lists(TEXTS, max_size=2), data=st.data())
def test_a_filter_finds_what_the_definition_finds(kind: Words, element: str, texts: list[str], data: st.DataObject):
    part = data.draw(st.sampled_from(texts)) if texts else ""
    element = data.draw(st.sampled_from([element, part, part[: len(part) // 2], part[len(part) // 2 :], part[2:5] + "*"]))
    asked = [said for said in oracle.said(element, kind.language, kind.keep, filter=True) if said is not None]
    schema = Schema({"about": kind})
    values = EventReader(schema)({"about": texts}).values
    for op in ("A_CONTAINS", "A_OVERLAPS"):
        filter = {"op": op.lower(), "args": [{"property": "about"}, [element]]}
        if not asked or any(said.prefix and len(said.written) < 2 for said in asked):
            with pytest.raises(FilterError, match=r"holds no word|a prefix has 2 characters"):
                compile_filter(schema, filter)
            continue
        wanted = oracle.holds(element, texts, kind.language, kind.keep)
        for whole in (filter, {"op": "and", "args": [filter, filter]}):
            (clause,) = compile_filter(schema, whole)
            assert clause.holds(schema, values) is wanted, (op, element, texts)
        negated = compile_filter(schema, {"op": "not", "args": [filter]})
        assert any(clause.holds(schema, values) for clause in negated) is not wanted


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from([*KINDS, Words(tokenizer=str.split)]), texts=st.lists(ANYTHING, min_size=1, max_size=4))
def test_tokens_in_bulk_are_tokens_one_by_one(kind: Words, texts: list[str]):
    start, token, distinct = tokenize_array(pa.array(texts, pa.string()), kind)
    found = [{distinct[t] for t in token[start[row] : start[row + 1]]} for row in range(len(texts))]
    assert found == [analyser_of(kind).tokens(text) for text in texts]


@settings(max_examples=100, deadline=None)
@given(kind=st.sampled_from(KINDS), given=st.lists(st.one_of(TEXTS, st.lists(TEXTS, max_size=2)), min_size=1, max_size=3))
def test_a_value_reads_back_as_itself(kind: Words, given: list[str | list[str]]):
    schema = Schema({"about": kind})
    read = EventReader(schema)
    for number, value in enumerate(given):
        event = read({"id": f"e{number}", "about": value})
        again = [
            event_from_record(schema, event_to_record(event)),
            read(event_body(schema, event)),
            pickle.loads(pickle.dumps(event)),
        ]
        again += batch_of(schema, Vocabularies(schema), [event]).events()
        again += batch_of(schema, Vocabularies(schema), [event]).some_events(np.array([0]))
        for other in again:
            assert other == event
            assert frozenset.__eq__(other.values["about"], event.values["about"])


def test_words_of_every_kind():
    schema = Schema({"about": Words(language="english", keep="+#@")})
    read = EventReader(schema)

    def found(element: str, text: str) -> bool:
        (clause,) = compile_filter(schema, f"A_CONTAINS(about, ({quoted(element)}))")
        return clause.holds(schema, read({"about": text}).values)

    assert found("mergers", "the merger")
    assert found("cafe", "Café")
    assert found("CAFÉ", "cafe")
    assert found("new york", "in New York, today")
    assert not found("new york", "york is new")
    assert not found("new york", "new in york")
    assert found("merg*", "merging")
    assert not found("merg*", "emerge")
    assert found("bank of england", "the Bank of England said")
    assert not found("bank of england", "bank of, of england: bank of scotland, of england")
    assert found("bank of eng*", "bank of england")
    assert found("東京", "東京都")
    assert not found("京都", "東京と都")
    assert found("C++", "modern C++")
    assert not found("C++", "vitamin C")
    assert found("#tag @name", "so #tag @name")
    assert not found("tag", "#tag")


@pytest.mark.parametrize(
    ("kind", "element", "told"),
    [
        (Words(), "C++", "'C++' asks for c; the tokenizer drops '++' (a schema with Words(keep='+') keeps it)"),
        (
            Words(),
            "merg*",
            "'merg*' asks for merg; the tokenizer drops '*' (a schema with Words(language=...) knows prefixes)",
        ),
        (Words(language="english"), "wi-fi!", "'wi-fi!' asks for wi fi; the tokenizer drops '!'"),
        (
            Words(tokenizer=f"{__name__}:long_words"),
            "an apple",
            "'an apple' asks for apple; the tokenizer drops 'an'",
        ),
    ],
)
def test_what_is_dropped_is_said(kind: Words, element: str, told: str):
    schema = Schema({"about": kind})
    with pytest.warns(DroppedWarning) as said:
        compile_filter(schema, f"A_CONTAINS(about, ('{element}'))")
    assert [str(warning.message) for warning in said] == [f"about: {told}"]
    with pytest.warns(DroppedWarning) as said:
        subscriptions_from_arrow(schema, Vocabularies(schema), pa.table({"id": ["a", "b"], "about.all": [[element], ["plain"]]}))
    assert [str(warning.message) for warning in said] == [f"about.all: {told}"]


def long_words(text: str) -> list[str]:
    return [word for word in text.lower().split() if len(word) > 2]


def test_a_callable_is_kept_by_its_name():
    schema = Schema({"about": Words(tokenizer=long_words)})
    assert schema.to_dict() == {"about": {"type": "words", "tokenizer": "tests.model.values.test_prose:long_words"}}
    assert Schema.from_json(schema.to_json()) == schema
    (clause,) = compile_filter(schema, "A_CONTAINS(about, ('red bike'))")
    read = EventReader(schema)
    assert clause.holds(schema, read({"about": "a Red of bike"}).values)
    assert not clause.holds(schema, read({"about": "bike red"}).values)
    with pytest.raises(SchemaError, match="gives None: a tokenizer gives strings"):
        EventReader(Schema({"about": Words(tokenizer=print)}))({"about": "red"})
    with pytest.raises(SchemaError, match="no_such_module"):
        EventReader(Schema({"about": Words(tokenizer="no_such_module:split")}))


@pytest.mark.parametrize("language", [language for language in languages() if language != "any"])
def test_stems_are_those_of_the_pure_python_stemmers(language: str):
    judge, stem = snowballstemmer.stemmer(language), stemmer_of(language)
    for word in ("merging", "mergers", "generously", "häuser", "nationalement", "città", "книги", "βιβλία", "مكتبات", "koirille"):
        assert stem(word) == judge.stemWord(word)


def test_columns_take_words_pairs_and_prefixes_and_refuse_the_rest():
    schema = Schema({"about": Words(language="english")})
    table = pa.table(
        {"id": ["a", "b", "c"], "about.all": [["new york", "bank"], ["merg*"], None], "about.any": [None, None, ["of england"]]}
    )
    subscriptions_from_arrow(schema, Vocabularies(schema), table)
    for element in ("bank of england", "internationalisation*", "m*"):
        for column in ("about.all", "about.any"):
            with pytest.raises(Exception, match="longer ones in a column `filter`"):
                subscriptions_from_arrow(schema, Vocabularies(schema), pa.table({"id": ["a"], column: [[element]]}))
    batch = events_from_arrow(schema, Vocabularies(schema), pa.table({"about": [["Banks"], None]}))
    assert batch.values(0)["about"].texts == ("Banks",)
    assert batch.values(1) == {}
