"""How publishes of many requests become one commit.

The writer's thread takes all that waits. Publishes that follow each other are published as one batch, so a disk that syncs two
hundred times a second takes thousands of events a second; each request learns of its own events only. If a batch is refused as a
whole, its requests are tried one by one, so that nobody fails by another's event. An event whose id was taken before is not
published again, whoever sends it (in a keyed topic an id is a key and comes again by right).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.durable.hearing import taken
from tidings.durable.opening import DurableTopic
from tidings.errors import TidingsError
from tidings.model.door.event import Event
from tidings.serve.hosting.lanes import Job


@dataclass(frozen=True, slots=True)
class Publish:
    """Events that were read, and may share a commit."""

    events: Sequence[Event]


@dataclass(slots=True)
class Taken:
    """`events` were published, `told` notifications are due; `repeated` were taken before and are not published again."""

    events: int = 0
    told: int = 0
    repeated: list[str] = field(default_factory=list)


class Writing:
    """The work of a topic's writer lane. `committed` is called after every change."""

    def __init__(self, topic: DurableTopic, committed: Callable[[], None]) -> None:
        self.topic = topic
        self.committed = committed
        self.groups = self.grouped = 0
        """commits of publishes, and the requests they were made for"""

    def __call__(self, jobs: Sequence[Job[Any]]) -> None:
        together: list[Job[Any]] = []
        for job in jobs:
            if isinstance(job.subject, Publish):
                together.append(job)
            else:
                self._publish(together)
                together = []
                job.run()
        self._publish(together)
        self.committed()

    def _publish(self, jobs: Sequence[Job[Any]]) -> None:
        if not jobs:
            return
        try:
            answers = self.publish([job.subject.events for job in jobs])
        except TidingsError as error:
            if len(jobs) == 1:
                jobs[0].error = error
            else:
                for job in jobs:
                    self._publish([job])
        except Exception as error:  # noqa: BLE001 - it is raised again where the answers are awaited
            for job in jobs:
                job.error = error
        else:
            self.groups, self.grouped = self.groups + 1, self.grouped + len(jobs)
            for job, answer in zip(jobs, answers, strict=True):
                job.result = answer

    def publish(self, requests: Sequence[Sequence[Event]]) -> list[Taken]:
        """Publish the events of several requests as one change."""
        keyed = self.topic.key is not None
        before = {} if keyed else taken(self.topic.registry, [e.id for events in requests for e in events])
        fresh: list[Event] = []
        mine: dict[str, int] = {}
        answers = [Taken() for _ in requests]
        for place, (events, answer) in enumerate(zip(requests, answers, strict=True)):
            for event in events:
                if not keyed and (event.id in before or event.id in mine):
                    answer.repeated.append(event.id)
                else:
                    mine[event.id] = place
                    answer.events += 1
                    fresh.append(event)
        if fresh:
            notes = self.topic.publish(fresh[0]) if len(fresh) == 1 else self.topic.publish_batch(fresh)
            for id, count in notes.told_of().items():
                if id in mine:
                    answers[mine[id]].told += count
        return answers
