"""A topic's schema: which attributes its events carry, and of which type.

Inside tidings every value has one form, made once at the door:

| type       | value                                                        |
|------------|--------------------------------------------------------------|
| `Number`   | float                                                        |
| `Category` | str                                                          |
| `Bool`     | bool                                                         |
| `Time`     | int, microseconds since 1970-01-01 UTC (exact in a float64)  |
| `Date`     | int, the first microsecond of the day, UTC                   |
| `Place`    | (xmin, ymin, xmax, ymax), floats; a point has equal corners. |
|            | With `shapes`, an `Outline`: that box, and the geometry      |
| `Words`    | frozenset of tokens; in a language a `Prose`: all by which   |
|            | its texts are found, and these texts                         |

A `Number`'s domain is a hint for the indexes: a value outside it is still an ordinary value and is found.
The first `Place` and the first `Words` attribute are the ones that indexes serve; predicates on further ones are checked
last, as residue.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from tidings._lazy import lazily
from tidings.errors import SchemaError, shown

Stemmer = lazily("Stemmer")

_LARGEST = 10**308
"""Whole numbers from here on may be more than a float64 holds."""


def _is_number(end: object) -> bool:
    return isinstance(end, float) or (isinstance(end, int) and abs(end) < _LARGEST)


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number. The domain `lo` to `hi` is a hint for indexes, and what a relaxed match measures by; others are taken, too.

    >>> import tidings as td
    >>> topic = td.Topic("t", {"price": td.Number(0, 100)})
    >>> notes = topic.subscribe("ann", "price BETWEEN 2 AND 5")
    >>> [match.subscription for match in topic.match({"id": "e1", "price": 5})]
    ['ann']
    """

    lo: float = -math.inf
    hi: float = math.inf

    def __post_init__(self) -> None:
        if not all(map(_is_number, (self.lo, self.hi))) or not self.lo < self.hi:
            raise SchemaError(f"Number({shown(self.lo)}, {shown(self.hi)}): a domain is two numbers, lo < hi")


@dataclass(frozen=True, slots=True)
class Category:
    """One of any number of texts.

    >>> import tidings as td
    >>> topic = td.Topic("t", {"brand": td.Category()})
    >>> notes = topic.subscribe("ann", "brand IN ('Acme', 'Beta')")
    >>> [match.subscription for match in topic.match({"id": "e1", "brand": 'Beta'})]
    ['ann']
    """


@dataclass(frozen=True, slots=True)
class Bool:
    """True or false.

    >>> import tidings as td
    >>> topic = td.Topic("t", {"free": td.Bool()})
    >>> notes = topic.subscribe("ann", "free = TRUE")
    >>> [match.subscription for match in topic.match({"id": "e1", "free": True})]
    ['ann']
    """


@dataclass(frozen=True, slots=True)
class Time:
    """An instant: a datetime, a text of ISO 8601, or seconds since 1970-01-01 UTC.

    >>> import tidings as td
    >>> topic = td.Topic("t", {"made": td.Time()})
    >>> notes = topic.subscribe("ann", "T_AFTER(made, TIMESTAMP('2026-01-01T00:00:00Z'))")
    >>> [match.subscription for match in topic.match({"id": "e1", "made": '2026-02-01T12:00:00Z'})]
    ['ann']
    """


@dataclass(frozen=True, slots=True)
class Date:
    """A calendar day.

    >>> import tidings as td
    >>> topic = td.Topic("t", {"day": td.Date()})
    >>> notes = topic.subscribe("ann", "day >= DATE('2026-01-01')")
    >>> [match.subscription for match in topic.match({"id": "e1", "day": '2026-01-01'})]
    ['ann']
    """


@dataclass(frozen=True, slots=True)
class Place:
    """A point or box; longitude and latitude in degrees, or coordinates of a plane.

    An event's geometry counts as its bounding box. With `shapes` it is kept, and every predicate on the place is judged on it
    after its box was found, which costs a call of shapely for each candidate.

    >>> import tidings as td
    >>> topic = td.Topic("t", {"place": td.Place()})
    >>> notes = topic.subscribe("ann", "S_DWITHIN(place, POINT(13.40 52.50), 1, 'km')")
    >>> [match.subscription for match in topic.match({"id": "e1", "place": (13.401, 52.50)})]
    ['ann']
    """

    plane: bool = False
    shapes: bool = False

    def __post_init__(self) -> None:
        for name in ("plane", "shapes"):
            if not isinstance(getattr(self, name), bool):
                raise SchemaError(f"Place({name}={shown(getattr(self, name))}): {name} is true or false")


Tokenizer = Callable[[str], Iterable[str]]
ANY_LANGUAGE = "any"
_PLAIN, _AS_IS = "plain", "as-is"
_NAMED = re.compile(r"[\w.]+:[\w.]+")
_TOKENIZERS = "a tokenizer is 'plain', 'as-is', a function, or the name of one as 'module:function'"


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a text. `plain` makes a set of tokens (NFKC, casefold, split at non-word characters), `as-is` takes them as given.

    With a `language`, words are compared by their stems and without accents, several in one quotation are a phrase, and `merg*`
    asks for what begins so; "any" does the same without stems. The characters of `keep` count as letters: `Words(keep="+#@")`
    knows C++, #tag and @name. `model/values/prose.py` tells all of it.

    A function from a text to its words may be the tokenizer. The schema keeps its name, `module:function`, so that whoever opens
    the topic, here or on Spark, imports the same.

    >>> Words(language="english").prose, Words(tokenizer=str.split).tokenizer
    (True, 'builtins:str.split')
    """

    tokenizer: str | Tokenizer = _PLAIN
    language: str | None = None
    keep: str = ""

    def __post_init__(self) -> None:
        if callable(self.tokenizer):
            object.__setattr__(self, "tokenizer", _name_of(self.tokenizer))
        elif not isinstance(self.tokenizer, str) or (self.callable and not _NAMED.fullmatch(self.tokenizer)):
            raise SchemaError(f"Words(tokenizer={shown(self.tokenizer)}): {_TOKENIZERS}")
        if self.tokenizer != _PLAIN and (self.language is not None or self.keep != ""):
            raise SchemaError(f"Words(tokenizer={shown(self.tokenizer)}): language and keep go with the tokenizer 'plain' alone")
        if self.language is not None and self.language not in (known := languages()):
            raise SchemaError(f"Words(language={shown(self.language)}): a language is one of {', '.join(known)}")
        if not isinstance(self.keep, str) or any(c.isalnum() or c.isspace() or c in "_*" for c in self.keep):
            raise SchemaError(f"Words(keep={shown(self.keep)}): characters but letters, digits, spaces, _ and * are accepted")

    @property
    def name(self) -> str:
        """The tokenizer's."""
        assert isinstance(self.tokenizer, str)
        return self.tokenizer

    @property
    def callable(self) -> bool:
        return self.tokenizer not in (_PLAIN, _AS_IS)

    @property
    def prose(self) -> bool:
        """Whether the order of words counts (`prose.py`); if not, they are a set (`text.py`)."""
        return self.language is not None or self.keep != "" or self.callable


@cache
def languages() -> tuple[str, ...]:
    """Those that `Words` knows."""
    return (ANY_LANGUAGE, *Stemmer.algorithms())


@cache
def tokenizer_named(name: str) -> Tokenizer:
    """The function of that name, `module:function`. It is imported when it is first needed: to read a schema runs nothing."""
    told = f"Words(tokenizer={shown(name)}): {_TOKENIZERS}"
    module, path = name.split(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise SchemaError(f"{told} ({error})") from None
    if not callable(found):
        raise SchemaError(told)
    called: Tokenizer = found
    return called


def _name_of(tokenizer: Tokenizer) -> str:
    """By which it is found again, in another process too."""
    module = getattr(tokenizer, "__module__", None) or getattr(getattr(tokenizer, "__objclass__", None), "__module__", None)
    path = getattr(tokenizer, "__qualname__", None)
    name = f"{module}:{path}"
    if module in (None, "__main__") or path is None or "<" in path or tokenizer_named(name) is not tokenizer:
        raise SchemaError(f"Words(tokenizer={shown(tokenizer)}): a function of a module is accepted, which others find by its name")
    return name


Attribute = Number | Category | Bool | Time | Date | Place | Words
_ALL: tuple[type[Attribute], ...] = (Number, Category, Bool, Time, Date, Place, Words)
TYPES: dict[str, type[Attribute]] = {t.__name__.lower(): t for t in _ALL}
RESERVED = frozenset({"id", "time", "expires", "score", "k", "window", "by", "owner", "filter", "weights", "similarity", "deleted"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Schema(Mapping[str, Attribute]):
    """Attribute types by name, in order. `ranges` are the names whose predicates are intervals or codes, in dimension order;
    `dimensional` goes on with the two whose presence is a dimension, the first Place and the first Words ("" for none).

    >>> import tidings as td
    >>> schema = td.Schema({"price": td.Number(0, 100), "brand": td.Category()})
    >>> td.Schema.from_json(schema.to_json()) == schema, list(schema)
    (True, ['price', 'brand'])
    """

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        for name, attribute in _object(attributes).items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise SchemaError(f"attribute name {shown(name)}: a name is letters, digits and _, not starting with a digit")
            if name in RESERVED:
                raise SchemaError(f"attribute name {name!r} is reserved; choose another")
            if not isinstance(attribute, Attribute):
                known = ", ".join(kind.__name__ for kind in _ALL)
                raise SchemaError(f"attribute {name!r} is {shown(attribute)}: a type is one of {known}")
        self._attributes = dict(attributes)
        self.kinds: dict[str, type[Attribute]] = {name: type(attribute) for name, attribute in attributes.items()}
        self.ranges = tuple(n for n, a in attributes.items() if isinstance(a, Number | Category | Bool | Time | Date))
        self.dimension = {name: i for i, name in enumerate(self.ranges)}
        self.place = next((n for n, a in attributes.items() if isinstance(a, Place)), None)
        self.words = next((n for n, a in attributes.items() if isinstance(a, Words)), None)
        self.dimensional = (*self.ranges, self.place or "", self.words or "")

    def __getitem__(self, name: str) -> Attribute:
        return self._attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __repr__(self) -> str:
        return f"Schema({self._attributes!r})"

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return {name: _attribute_to_dict(attribute) for name, attribute in self.items()}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Schema:
        return cls({name: _attribute_from(name, value) for name, value in _object(spec).items()})

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Schema:
        try:
            spec = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise SchemaError(f"the schema is broken JSON: {error}") from None
        return cls.from_dict(spec)

    def to_toml(self) -> str:
        """One inline table an attribute, under `[schema]`."""
        lines = [f"{name} = {_inline_table(spec)}" for name, spec in self.to_dict().items()]
        return "\n".join(["[schema]", *lines, ""])

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        try:
            spec = tomllib.loads(text)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise SchemaError(f"the schema is broken TOML: {error}") from None
        if "schema" not in spec:
            raise SchemaError(
                f"the TOML has {shown(sorted(spec))} and no [schema]: a table [schema] with a type for each attribute is accepted"
            )
        return cls.from_dict(spec["schema"])


def _object(given: object) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise SchemaError(f"schema {shown(given)}: an object with a type for each attribute is accepted")
    return given


def _attribute_to_dict(attribute: Attribute) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": type(attribute).__name__.lower()}
    for field in fields(attribute):
        value = getattr(attribute, field.name)
        if value != field.default:
            spec[field.name] = value
    return spec


def _attribute_from(name: str, spec: Any) -> Attribute:
    """`{"type": "number", "lo": 0, "hi": 9}`, or the type's name alone."""
    if not isinstance(spec, str | Mapping):
        raise SchemaError(f"attribute {name!r} is {shown(spec)}: a type's name, or an object with it and its options, is accepted")
    spec = {"type": spec} if isinstance(spec, str) else dict(spec)
    kind = str(spec.pop("type", "")).lower()
    if kind not in TYPES:
        raise SchemaError(f"attribute {name!r} has type {shown(kind)}: a type is one of {', '.join(TYPES)}")
    known = {field.name for field in fields(TYPES[kind])}
    for option in spec:
        if option not in known:
            raise SchemaError(f"attribute {name!r}: type {kind} has no option {shown(option)}; it takes {sorted(known) or 'none'}")
    return TYPES[kind](**spec)


def _inline_table(spec: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in spec.items()) + " }"
