"""The painter of one machine: changes of objects become messages here, and the writer's records.

What it has painted is what Kafka has: begun anew it reads the objects back, so that nothing depends on what it remembers. Its
memory is that of the objects, and of the watchers' sketch where it paints for those alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.boards.messages.painter import FamilyPainter
from tidings.errors import TidingsError
from tidings.kafka.layout import Plan, attributes_of, await_topics, ranges_between, widen
from tidings.kafka.records import object_records
from tidings.kafka.replica import Replica
from tidings.kafka.writer import Writer
from tidings.model.filter.clause import Values


class Painter(Writer):
    def __init__(self, brokers: str, plan: Plan, statistics: Any = None) -> None:
        super().__init__(brokers, plan, statistics)
        self._attributes = attributes_of(plan.schema, plan.families)
        self.load()

    def load(self) -> Replica:
        replica = super().load()
        self.painters = [FamilyPainter(self.plan.schema, self.topic, family) for family in self.plan.families]
        for painter, objects in zip(self.painters, replica.objects, strict=True):
            painter.take_over(objects)
        self._cover()
        return replica

    @property
    def keys(self) -> Iterator[str]:
        """Of all objects that are in some family, perhaps more than once; none is read unless it is asked for."""
        return (key for painter in self.painters for key in painter.objects.keys.number)

    def publish(self, changes: Mapping[str, Values | None], at: int) -> int:
        """Tell of objects that now have these values, in one sequence; how many messages there are. None is an object gone.

        What Kafka does not take is not painted: `load` goes back to what it has, and the caller says again what changed."""
        self.look()
        said = [painter.say(changes) for painter in self.painters]
        self.write(object_records(changes, self._attributes), said, at)
        return sum(len(each.box) for each in said)

    def look(self) -> bool:
        news = super().look()
        if news:
            self._cover()
        return news

    def split(self, zone: int, family: int = 0) -> None:
        """Cut a zone in two, at the median of what the objects say; its gateway hands the watchers on."""
        points = self.painters[family].objects.index.arrays
        low, high = self.plan.zones[family].low[zone], self.plan.zones[family].high[zone]
        sample = ranges_between(points.x[points.block_of >= 0].tolist())
        plan = self.plan.split(zone, family, sample[((low <= sample) & (sample < high)).all(1)], self.sequence + 1)
        if plan.partitions == self.plan.partitions:
            raise TidingsError(f"zone {zone} cannot be split: there are no two objects' values in it")
        widen(self._brokers, self.topic, plan.partitions)
        await_topics(self._producer, self.topic, plan.partitions)
        self.write_plan(plan, marker=zone)

    def _cover(self) -> None:
        if self.sketch is not None:
            for painter in self.painters:
                painter.cover(self.sketch.cover(painter.family.name))
