"""What a topic is made of, and how it changes.

Every change is made in three steps: read and check the input, commit it to the journal (a durable topic's registry; nothing in
memory), apply it. What is not committed is not applied, and what was applied is committed. Windows and boards change before the
commit, which takes their notifications along, and are put back if it fails (`Committed`). Writers take turns; matching waits for
nobody's commit.
"""

from __future__ import annotations

import threading
import time as wall_clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

from tidings.boards.messages.painted import Painted, Touched
from tidings.errors import EventError, StorageError, shown
from tidings.match.answers.results import Notification
from tidings.match.store.event_statistics import Statistics
from tidings.match.store.hits import LONG_AGO
from tidings.match.store.housekeeping import Housekeeping
from tidings.match.store.store import Ids, Store
from tidings.model.columns.arrays import Vocabularies
from tidings.model.columns.few_rows import FewRows
from tidings.model.columns.incoming import IGNORE, RAISE, must_be_known
from tidings.model.door.event import EventReader
from tidings.model.door.single_values import read_time
from tidings.model.filter.clause import Values
from tidings.model.values.schema import Attribute, Schema
from tidings.model.values.window import duration
from tidings.topic.journal import Act, Journal
from tidings.topic.publisher import Publisher
from tidings.topic.undo import Remembered

Answer = TypeVar("Answer")
Told = TypeVar("Told", bound=Sequence[Notification])


class Changing:
    def __init__(
        self,
        name: str,
        schema: Schema | Mapping[str, Attribute],
        *,
        key: str | None = None,
        retention: str | timedelta | None = None,
    ) -> None:
        self.name = name
        self.retention = None if retention is None else duration("retention", retention)
        """microseconds after which an event without `expires` ends"""
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)
        self.key = key
        self._read = EventReader(self.schema, key)
        self._few_rows = FewRows(self._read)
        self._readers: dict[tuple[str | None, str], EventReader] = {}
        self.statistics = Statistics()
        self.half_done = False
        self._writing = threading.RLock()
        self.use(Vocabularies(self.schema))
        self.publisher = self.new_publisher()
        self._painted = Painted(name, self.schema)
        self.journal: Journal = Remembered(self.new_publisher())

    def in_turn(self, publishing: Callable[[], Answer]) -> Answer:
        """Publish when it is this thread's turn."""
        with self._writing:
            return publishing()

    def use(self, vocabularies: Vocabularies) -> None:
        """Begin with these codes and no subscriptions."""
        self.store = Store(self.schema, vocabularies, self.statistics)
        self.housekeeping = Housekeeping(self.store)

    @property
    def vocabularies(self) -> Vocabularies:
        """The codes that stand now; another object after they were taken back."""
        return self.store.vocabularies

    def new_publisher(self) -> Publisher:
        """One that knows nothing yet."""
        return Publisher(self.schema, self.key, self._matching)

    def _matching(self, values: Values) -> list[str]:
        return [id for found in self.store.reader().match_one(values, LONG_AGO) for id in found.source.names(found.ordinal)]

    def must_be_whole(self) -> None:
        """Recover if that was itself interrupted before. A closed topic is not whole."""
        if isinstance(self.store, Closed):
            self.store.refuse()
        if self.half_done:
            self.recover()

    def touched(self, touched: Touched, known: Iterable[str]) -> dict[str, Values | None]:
        """What is to be painted, by whoever paints elsewhere."""
        with self._writing:
            self.must_be_whole()
            return touched.take(self.publisher, known)

    def recover(self) -> None:
        """After a change that failed: windows, boards and live events as they were at the last commit."""
        self.publisher = self.journal.restored(self.new_publisher, self.store)
        self.half_done = False

    def reader_of(self, id: str | None, on_unknown: str) -> EventReader:
        """What reads events whose id is field `id`, and that may have fields nobody knows."""
        if id is None and on_unknown == RAISE:
            return self._read
        must_be_known(on_unknown, EventError)
        if id is not None and not isinstance(id, str):
            raise EventError(f"id is {shown(id)}: the name of a field is accepted")
        if (id, on_unknown) not in self._readers:
            self._readers[id, on_unknown] = EventReader(self.schema, self.key, id, on_unknown == IGNORE)
        return self._readers[id, on_unknown]

    @staticmethod
    def _at(time: Any) -> int:
        """The only place that looks at the wall clock."""
        instant = read_time("time", time)
        return wall_clock.time_ns() // 1000 if instant is None else instant


class Closed:
    """Stands where the store and the publisher of a closed topic were."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def refuse(self) -> NoReturn:
        raise StorageError(f"the topic {self._name!r} was closed: open it again")

    def __getattr__(self, asked: str) -> NoReturn:
        if asked.startswith("__"):
            raise AttributeError(asked)
        self.refuse()

    def __len__(self) -> int:
        self.refuse()

    def __contains__(self, id: object) -> bool:
        self.refuse()


class Committed:
    """A change of windows, boards, live events and the subscriptions `ids` that is committed by the end of the block, or else
    undone."""

    __slots__ = ("_acts", "_began", "_topic")

    def __init__(self, topic: Changing, ids: Ids | None = None) -> None:
        self._topic = topic
        self._acts: list[Act] = []
        topic.journal.must_be_writable()
        topic.must_be_whole()
        topic.journal.begins(topic.store, ids)

    def __enter__(self) -> Committed:
        self._topic.half_done = True
        return self

    def do(self, act: Callable[[Publisher], Told]) -> Told:
        """Change the publisher."""
        if not self._acts:
            self._began = wall_clock.perf_counter()
        self._acts.append(act)
        return act(self._topic.publisher)

    def watch(self, act: Callable[[Publisher], Told]) -> Told:
        """The same with subscriptions, which in a keyed topic are all that boards need to be made anew."""
        return self.do(act) if self._topic.key is None else act(self._topic.publisher)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        topic = self._topic
        if kind is not None:
            topic.recover()
            return
        topic.half_done = False
        topic.journal.done(self._acts, wall_clock.perf_counter() - self._began if self._acts else 0.0, topic.publisher)
