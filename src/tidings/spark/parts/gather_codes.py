"""The codes that all segments of a topic share: every category and word that its subscriptions name, gathered by the executors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.subscription_tables import subscriptions_from_arrow
from tidings.model.values.schema import Schema
from tidings.spark.frames.arrow_stage import Batches
from tidings.spark.frames.parquet_files import Given, form_of, map_given

STRING = {"attribute": pa.string(), "string": pa.string()}
NAMING = (".in", ".all", ".any")
"""Predicate columns that name categories and words."""


def gather_vocabularies(subscriptions: Given, schema: Schema) -> Vocabularies:
    """All categories and words of these subscriptions, in the order of their text."""
    named = [column for column in form_of(subscriptions).names if column == "filter" or column.endswith(NAMING)]
    vocabularies = Vocabularies(schema)
    if named:
        strings = map_given(subscriptions, partial(strings_of, schema), STRING, ["id", *named]).distinct().toArrow()
        for attribute, string in sorted(zip(*(strings[column].to_pylist() for column in STRING), strict=True)):
            (vocabularies.categories[attribute] if attribute else vocabularies.words).add(string)
    return vocabularies


def strings_of(schema: Schema, batches: Batches) -> Iterator[pa.RecordBatch]:
    """(attribute, string) of every category and word that a partition names; words have no attribute."""
    vocabularies = Vocabularies(schema)
    for batch in batches:
        subscriptions_from_arrow(schema, vocabularies, batch, on_error="skip")
    for attribute, vocabulary in (*vocabularies.categories.items(), ("", vocabularies.words)):
        strings = pa.array(vocabulary.strings, pa.string())
        yield pa.record_batch([pa.array([attribute] * len(strings), pa.string()), strings], names=list(STRING))
