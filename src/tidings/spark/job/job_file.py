"""A job as `tidings run` reads it: a TOML file, checked whole before Spark starts.

[topic]                                  the folder; made from [subscriptions] if there is none
path = "data/offers"
name = "offers"
schema = { price = "number", place = "place", about = "words" }
key = "sku"                              only for a keyed topic

[subscriptions]                          any batch source of Spark: format, options, schema; read once, to make the topic
format = "parquet"
options = { path = "data/subscriptions.parquet" }

[changes]                                any streaming source, applied while the job runs; `seq` or `time` orders those of one id
format = "parquet"
options = { path = "data/changes" }

[events]                                 any streaming source; `value = "json"` reads its column `value` as JSON events
format = "parquet"
options = { path = "data/events", maxFilesPerTrigger = "1" }

[searches]                               instead of [events] where the answer is "search": a streaming source of subscriptions
format = "parquet"
options = { path = "data/searches" }

[answer]                                 "notify", the default, with shards, delay; "match" with k, relaxed, aggregate; "board" with
                                         shards; "messages", a board's, with families = ["price:-stars:20"]; "search"
kind = "notify"

[sink]                                   any streaming sink of Spark; for "messages" also "gateways", which paints over Kafka,
                                         with options = { brokers = "localhost:9092", zones = 16, sparse = false }
format = "parquet"
options = { path = "data/notifications" }

[refused]                                a sink for what cannot be read, with the reason; without one it is counted
format = "json"
options = { path = "data/refused" }

[run]
checkpoint = "data/checkpoint"
trigger = "available-now"                or a duration as "5 seconds"
report = "report.html"
warm_up = true                           let some events through to nowhere first; the first micro-batch is then as fast as the next
settings = { "spark.sql.shuffle.partitions" = "2" }

`tidings check --schema` prints the JSON Schema of this, for editors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tidings.errors import SchemaError, SubscriptionError, TidingsError
from tidings.model.values.schema import Schema
from tidings.model.values.window import parse_window

NOW = "available-now"
GATEWAYS = "gateways"
"""The format of a sink that is ours: Kafka, for gateways."""


class JobError(TidingsError):
    """A job cannot be read or run."""


def as_text(value: object) -> object:
    """Spark's options are text; TOML's numbers and booleans are taken for it."""
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


def as_attributes(value: dict[str, Any]) -> dict[str, Any]:
    try:
        Schema.from_dict(value)
    except SchemaError as error:
        raise ValueError(str(error)) from error
    return value


def as_duration(text: str) -> str:
    """The duration in the one unit that Spark and tidings spell alike."""
    try:
        duration = parse_window(text).duration
    except SubscriptionError:
        duration = None
    if duration is None or duration % 1000:
        raise ValueError("a duration as '5 seconds' or '10 min' is accepted")
    return f"{duration // 1000} milliseconds"


def as_trigger(text: str) -> str:
    how = text.strip()
    if how == NOW:
        return how
    try:
        return as_duration(how)
    except ValueError:
        raise ValueError(f"'{NOW}' or a duration as '5 seconds' is accepted") from None


Options = dict[str, Annotated[str, BeforeValidator(as_text)]]
Duration = Annotated[str, AfterValidator(as_duration)]
Attributes = Annotated[dict[str, Any], AfterValidator(as_attributes)]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Source(Table):
    """A source or sink of Spark: its `format`, `options`, and where it needs one the `schema` as Spark's DDL."""

    format: str
    options: Options = {}
    columns: str | None = Field(default=None, alias="schema")
    value: Literal["json"] | None = Field(default=None, description="read the column `value` as JSON events")


class TopicTable(Table):
    """Where the topic is, and what it is where there is none yet."""

    path: str
    name: str | None = None
    attributes: Attributes | None = Field(default=None, alias="schema")
    key: str | None = None

    @property
    def schema_given(self) -> Schema | None:
        return None if self.attributes is None else Schema.from_dict(self.attributes)


class Answer(Table):
    """What is answered, and how."""

    kind: Literal["notify", "match", "board", "messages", "search"] = "notify"
    k: int | None = Field(default=None, ge=0)
    relaxed: bool = False
    aggregate: Literal["sum", "max", "min"] = "sum"
    shards: int | None = Field(default=None, ge=1)
    delay: Duration | None = None
    families: list[str] = Field(default=[], description="painted families, as price:-stars:20")


class Run(Table):
    """How the job runs, and where it keeps what it has done."""

    checkpoint: str
    trigger: Annotated[str, AfterValidator(as_trigger)] = NOW
    report: str = "report.html"
    warm_up: bool = Field(default=False, description="let some events through to nowhere before the first run")
    settings: Options = {}

    @property
    def folder(self) -> Path | None:
        """The checkpoint's folder; None where it is at a URL."""
        return None if "://" in self.checkpoint else Path(self.checkpoint)

    def within(self, name: str) -> str:
        """The path of something in the checkpoint."""
        return f"{self.checkpoint.rstrip('/')}/{name}"

    @property
    def spark_trigger(self) -> dict[str, Any]:
        """The arguments of Spark's `trigger`."""
        return {"availableNow": True} if self.trigger == NOW else {"processingTime": self.trigger}


class Job(Table):
    """A tidings job."""

    model_config = ConfigDict(title="tidings job")

    topic: TopicTable
    sink: Source
    run: Run
    events: Source | None = None
    searches: Source | None = None
    subscriptions: Source | None = None
    changes: Source | None = None
    refused: Source | None = None
    answer: Answer = Answer()

    @property
    def asked(self) -> Source:
        """What streams in: events, or searches."""
        source = self.searches if self.answer.kind == "search" else self.events
        assert source is not None, "checked when the job was read"
        return source
