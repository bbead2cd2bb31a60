"""What a page holds in memory, by the browser's own count."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import psutil

CODE = {"code"}
NATIVE = {"native", "hidden", "synthetic"}


class Session(Protocol):
    """Of the browser's protocol, at a page: Playwright's, or `bare`."""

    def send(self, method: str, given: dict[str, Any]) -> dict[str, Any]: ...

    def on(self, event: str, heard: Callable[[Any], object]) -> None: ...


class Heap:
    """Bytes and counts of one page, after garbage was collected."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.session.send("Performance.enable", {})
        self._parts: list[str] = []
        self.session.on("HeapProfiler.addHeapSnapshotChunk", lambda given: self._parts.append(given["chunk"]))

    def run(self, script: str) -> Any:
        return self.session.send("Runtime.evaluate", {"expression": script, "returnByValue": True})["result"].get("value")

    def counted(self) -> dict[str, int]:
        """Nodes of the document, listeners, and the heap of its scripts."""
        for _ in range(2):
            self.session.send("HeapProfiler.collectGarbage", {})
        found = {one["name"]: int(one["value"]) for one in self.session.send("Performance.getMetrics", {})["metrics"]}
        return {"heap": found["JSHeapUsedSize"], "nodes": found["Nodes"], "listeners": found["JSEventListeners"]}

    def held(self) -> dict[str, int]:
        """The heap in parts: `data` is what scripts made, `code` what the engine compiled of them, which it does when it likes."""
        self._parts.clear()
        self.session.send("HeapProfiler.takeHeapSnapshot", {"reportProgress": False})
        snapshot = json.loads("".join(self._parts))
        fields, kinds = snapshot["snapshot"]["meta"]["node_fields"], snapshot["snapshot"]["meta"]["node_types"][0]
        kind, size, nodes = fields.index("type"), fields.index("self_size"), snapshot["nodes"]
        by_kind: Counter[str] = Counter()
        for at in range(0, len(nodes), len(fields)):
            by_kind[kinds[nodes[at + kind]]] += nodes[at + size]
        code, native = (sum(by_kind[name] for name in names) for names in (CODE, NATIVE))
        return {"data": by_kind.total() - code - native, "code": code, "native": native}


def of_process(browser: int) -> int:
    """Bytes that the page's process has for itself; the page is the only one of the browser with this process id."""
    found = [one for one in psutil.Process(browser).children(recursive=True) if "--type=renderer" in one.cmdline()]
    return max(int(one.memory_full_info().uss) for one in found)
