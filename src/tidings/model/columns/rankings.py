"""The ranking columns of a table of subscriptions: what stands beside the filter, validated in bulk.

`columns` holds Arrow arrays, null where a subscription keeps the default, and only of what the table has:

| name       | type    | meaning                                                                  |
|------------|---------|--------------------------------------------------------------------------|
| `score`    | float64 | the static score, or the constant of the formula                         |
| `formula`  | string  | the text of a score that depends on the event (`score` given as strings)   |
| `k`        | int32   |                                                                          |
| `window`   | string  | as `Window` prints it                                                     |
| `by`       | string  | the relevance                                                            |
| `expires`  | int64   | microseconds since 1970-01-01 UTC                                        |
| `owner`    | string  |                                                                          |
| `tags`     | list<string> | ascending, each once; null for none                                 |
| `alpha`, `theta` | float64 | the similarity                                                      |
| `error`    | float64 | sigma                                                                    |
| `per`, `tz` | string | the attribute of which one a value counts, and the time zone              |
| `budget`, `cooldown`, `dwell`, `digest` | string | the pace, as `values.pace` writes it          |

`weights[attribute]` is float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings._lazy import lazily
from tidings.errors import EventError, SubscriptionError
from tidings.model.columns.arrays import rows_of
from tidings.model.columns.arrow import TableReader
from tidings.model.columns.arrow_numbers import NONE
from tidings.model.door.subscription import LARGEST_K, read_bounded, read_ranking, read_tags
from tidings.model.filter.linear import parse_linear
from tidings.model.values.limits import recovering
from tidings.model.values.pace import APART, PACES
from tidings.model.values.schema import Schema
from tidings.model.values.window import LARGEST, Window, parse_window

pc = lazily("pyarrow.compute")

FIELDS = ("score", "k", "window", "by", "expires", "owner", "tags", "similarity", "error", "per", "tz", *PACES)
TEXTS = ("by", "per", "tz", *PACES)
"""Those that are texts, read once for each different one."""


@dataclass(slots=True)
class Rankings:
    columns: dict[str, pa.Array] = field(default_factory=dict)
    weights: dict[str, pa.Array] = field(default_factory=dict)

    def at(self, schema: Schema, row: int) -> dict[str, Any]:
        """The fields of `Subscription` of one row."""
        given = {name: column[row].as_py() for name, column in self.columns.items()}
        alpha, theta, formula = given.pop("alpha", None), given.pop("theta", None), given.pop("formula", None)
        expires = given.pop("expires", None)
        if formula is not None:
            given["score"] = formula
        if alpha is not None:
            given["similarity"] = (alpha, theta)
        weights = {name: column[row].as_py() for name, column in self.weights.items()}
        given["weights"] = {name: weight for name, weight in weights.items() if weight is not None} or None
        with recovering():
            return {"expires": expires, **read_ranking(schema, given)}


def read_rankings(schema: Schema, reader: TableReader) -> Rankings:
    result = Rankings()
    for name in FIELDS:
        if name in reader:
            result.columns |= _READERS[name](schema, reader)
    _refuse_together(reader, result.columns)
    for name in schema:
        if f"{name}.weight" in reader:
            result.weights[name] = _bounded(reader, f"{name}.weight", 0.0, np.inf)
    return result


def _refuse_together(reader: TableReader, columns: dict[str, pa.Array]) -> None:
    """Rows whose parts do not go together."""
    pairs = [("per", "error", "a list of one per value is exact")]
    pairs += [("digest", other, "it is the best of its own period") for other in APART]
    for name, other, sentence in pairs:
        if {name, other} <= columns.keys():
            both = pc.and_(columns[name].is_valid(), columns[other].is_valid()).to_numpy(zero_copy_only=False)
            reader.refuse(both, partial(_said, f"{name} stands beside a {other}: {sentence}"))


def _said(sentence: str, row: int) -> str:
    return sentence


def _score(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    if not pa.types.is_string(reader.column("score").type):
        return {"score": _bounded(reader, "score", -np.inf, np.inf)}
    texts = reader.strings("score")
    linear = {text: _parsed(lambda text: parse_linear(schema, "score", text), text) for text in texts.distinct}
    base = texts.table(lambda text: np.nan if linear[text] is None else linear[text].base, np.float64, np.nan)
    _refuse_field(schema, reader, "score", (texts.index >= 0) & np.isnan(base))
    varying = np.array([bool(form and form.coefficients) for form in linear.values()] + [False], np.bool_)[texts.index]
    return {"score": _nullable(base, np.isnan(base)), "formula": pc.if_else(pa.array(varying), reader.column("score"), None)}


def _k(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    value = reader.integers("k")
    present = reader.present("k")
    _refuse_field(schema, reader, "k", present & ((value < 0) | (value > LARGEST_K)))
    return {"k": _nullable(np.clip(value, 0, LARGEST_K).astype(np.int32), ~present)}


def _window(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    kind = reader.column("window").type
    if pa.types.is_duration(kind):
        length = reader.durations("window")
        bad = reader.present("window") & ((length <= 0) | (length > LARGEST))
        return {"window": _lengths(schema, reader, length, bad, lambda microseconds: Window(duration=microseconds))}
    if pa.types.is_integer(kind):
        length = reader.integers("window")
        bad = reader.present("window") & ((length <= 0) | (length > LARGEST))
        return {"window": _lengths(schema, reader, length, bad, lambda count: Window(count=count))}
    return {"window": _checked_text(schema, reader, "window", lambda text: str(parse_window(text)))}


def _lengths(
    schema: Schema, reader: TableReader, length: NDArray[np.int64], bad: NDArray[np.bool_], window: Callable[[int], Window]
) -> pa.Array:
    _refuse_field(schema, reader, "window", bad)
    distinct, index = np.unique(length, return_inverse=True)
    texts = pa.array([str(window(value)) if 0 < value <= LARGEST else None for value in distinct.tolist()], pa.string())
    return texts.take(pa.array(index))


def _similarity(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    pairs = reader.pairs("similarity", ("alpha", "theta"))
    present = reader.present("similarity")
    with np.errstate(invalid="ignore"):
        good = ((pairs >= 0.0) & (pairs <= 1.0)).all(axis=1)
    if (present & ~good).any():
        column = reader.column("similarity")
        reader.refuse(
            present & ~good,
            lambda row: f"similarity is {column[row].as_py()}: (alpha, theta), two numbers from 0 to 1, is accepted",
        )
    return {"alpha": _nullable(pairs[:, 0], ~present), "theta": _nullable(pairs[:, 1], ~present)}


def _error(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    sigma = reader.numbers("error")
    _refuse_field(schema, reader, "error", (sigma <= 0.0) | (sigma >= 1.0))
    return {"error": _nullable(sigma, np.isnan(sigma))}


def _expires(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    instants = reader.times("expires")
    return {"expires": _nullable(instants, instants == NONE)}


def _owner(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    return {"owner": reader.names("owner")}


def _tags(schema: Schema, reader: TableReader) -> dict[str, pa.Array]:
    tags = reader.lists("tags")
    ascending = sorted(tags.distinct)
    place = {tag: number for number, tag in enumerate(ascending)}
    unfit = np.array([_parsed(read_tags, [tag]) is None for tag in tags.distinct], np.bool_)
    if unfit.any():
        _refuse_field(schema, reader, "tags", np.bincount(rows_of(tags.start), unfit[tags.token], len(tags.present)) > 0)
    start, code = tags.codes(lambda distinct: [place[tag] for tag in distinct])
    offsets = pa.array(start.astype(np.int32), mask=np.append(np.diff(start) == 0, False))
    return {"tags": pa.ListArray.from_arrays(offsets, pa.array(ascending, pa.string()).take(pa.array(code)))}


def _text(schema: Schema, reader: TableReader, name: str) -> dict[str, pa.Array]:
    return {name: _checked_text(schema, reader, name, lambda text: str(read_ranking(schema, {name: text})[name]))}


def _checked_text(schema: Schema, reader: TableReader, name: str, read: Callable[[str], str]) -> pa.Array:
    """Strings in the form that `read` gives them, once for each distinct one."""
    texts = reader.strings(name)
    forms = [_parsed(read, text) for text in texts.distinct]
    refused = np.array([form is None for form in forms] + [False])[texts.index]
    _refuse_field(schema, reader, name, refused)
    return pa.array(forms, pa.string()).take(_nullable(texts.index, texts.index < 0))


def _parsed(read: Callable[[Any], Any], text: object) -> Any:
    try:
        return read(text)
    except (SubscriptionError, EventError):
        return None


def _bounded(reader: TableReader, name: str, lo: float, hi: float) -> pa.Array:
    value = reader.numbers(name)
    reader.refuse_values(name, (value < lo) | (value > hi), lambda name, value: read_bounded(name, value, lo, hi))
    return _nullable(value, np.isnan(value))


def _refuse_field(schema: Schema, reader: TableReader, name: str, bad: NDArray[np.bool_]) -> None:
    reader.refuse_values(name, bad, lambda name, value: read_ranking(schema, {name: value}))


def _nullable(values: NDArray[Any], none: NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=none)


_READERS: dict[str, Callable[[Schema, TableReader], dict[str, pa.Array]]] = {
    "score": _score,
    "k": _k,
    "window": _window,
    "expires": _expires,
    "owner": _owner,
    "tags": _tags,
    "similarity": _similarity,
    "error": _error,
    **{name: partial(_text, name=name) for name in TEXTS},
}
