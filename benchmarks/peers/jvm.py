"""Peers on the JVM: their jars from Maven Central, asked by `java/*.java`, which are compiled into build/peers."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers.peer import Measured, Task, Unavailable, told

HERE = Path(__file__).parent
BUILT = HERE.parent.parent / "build" / "peers"
WARM_UP = 5.0
"""Seconds of asking before anything is timed: Java compiles meanwhile."""


class OnJVM:
    def __init__(self, name: str, version: str, main: str) -> None:
        self.name, self.version, self._main = name, version, main

    def measure(self, task: Task) -> Measured:
        classpath = compiled()
        with tempfile.TemporaryDirectory() as folder:
            subscriptions, events = Path(folder) / "subscriptions", Path(folder) / "events"
            write_subscriptions(task, subscriptions)
            write_events(task, events)
            command = ["java", "-Xmx12g", "-XX:+UseSerialGC", "-cp", classpath, self._main, str(subscriptions), str(events)]
            done = subprocess.run([*command, str(WARM_UP)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"it ended with: {(done.stderr.strip().splitlines() or ['nothing said'])[-1][:200]}")
        said = json.loads(done.stdout.splitlines()[-1])
        return Measured(said["answers"], said["batch"], said["single"])


def compiled() -> str:
    """The classpath of our drivers and what they need."""
    jars, classes = BUILT / "jars", BUILT / "classes"
    for tool in ("mvn", "javac"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no '{tool}'")
    if not any(jars.glob("*.jar")):
        with told("jars from Maven Central"):
            fetch = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
            done = subprocess.run(fetch, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable("Maven Central cannot be reached")
    sources = sorted((HERE / "java").glob("*.java"))
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources)], check=True)
    return f"{classes}:{jars}/*"


def write_subscriptions(task: Task, path: Path) -> None:
    words = task.workload.subscriptions["about.all"].to_pylist()
    with path.open("w") as file:
        for box, wanted in zip(task.corners().tolist(), words, strict=True):
            file.write(json.dumps({"box": box, "words": wanted}) + "\n")


def write_events(task: Task, path: Path) -> None:
    with path.open("w") as file:
        for event in task.events():
            x, y = event["place"]
            file.write(json.dumps({"x": x, "y": y, "words": event["about"]}) + "\n")


def lucene_monitor() -> OnJVM:
    return OnJVM("Lucene Monitor", "9.11.1", "LuceneMonitor")


def event_ruler() -> OnJVM:
    return OnJVM("event-ruler", "2.1.0", "EventRuler")
