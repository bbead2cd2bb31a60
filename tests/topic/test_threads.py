"""Several threads at one topic: changes wait for each other and none is lost; who asks sees one state of all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import tidings as td

THREADS, TIMES = 4, 25


def test_threads_change_and_ask_one_topic(tmp_path):
    with td.open(tmp_path / "topic", "deals", {"price": td.Number()}) as topic:

        def work(thread: int) -> list[int]:
            found = []
            for time in range(TIMES):
                topic.subscribe(f"s{thread}-{time}", f"price >= {time}")
                topic.publish({"id": f"e{thread}-{time}", "price": TIMES})
                mine = [match for match in topic.match({"id": "e", "price": TIMES}) if match.subscription.startswith(f"s{thread}-")]
                found.append(len(mine))
            return found

        with ThreadPoolExecutor(THREADS) as pool:
            assert [*pool.map(work, range(THREADS))] == [[*range(1, TIMES + 1)]] * THREADS
        assert len(topic) == len(topic.search("price >= 0")) == THREADS * TIMES
        told = [number for number, _ in topic.outbox()]
        assert told == sorted(set(told))
