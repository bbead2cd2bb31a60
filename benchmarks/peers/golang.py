"""quamina, built with our `go/quamina.go` into build/peers; and programs that `go install` brings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers.jvm import BUILT, HERE
from benchmarks.peers.peer import Measured, Task, Unavailable, told

REPEATS = 5


class Quamina:
    """Patterns of categories; it knows no batches. Of its versions the module proxy gives this one."""

    name, version = "quamina", "0.3.0"

    def measure(self, task: Task) -> Measured:
        program = self._built()
        with tempfile.TemporaryDirectory() as folder:
            patterns, events = Path(folder) / "patterns", Path(folder) / "events"
            columns = [name for name in task.workload.subscriptions.column_names if name.endswith(".in")]
            rows = task.workload.subscriptions.select(columns).to_pylist()
            patterns.write_text("".join(json.dumps({name[:-3]: row[name] for name in columns}) + "\n" for row in rows))
            told_events = ({name: value for name, value in event.items() if name != "id"} for event in task.events())
            events.write_text("".join(json.dumps(event) + "\n" for event in told_events))
            done = subprocess.run([str(program), str(patterns), str(events), str(REPEATS)], capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"it ended with: {(done.stderr.strip().splitlines() or ['nothing said'])[0][:200]}")
        said = json.loads(done.stdout)
        return Measured(said["answers"], said["single"], said["single"])

    def _built(self) -> Path:
        program = BUILT / "quamina"
        if not program.exists():
            source = BUILT / "go"
            source.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / "go" / "quamina.go", source)
            (source / "go.mod").write_text(f"module peer\n\ngo 1.21\n\nrequire github.com/timbray/quamina v{self.version}\n")
            with told("quamina from the Go module proxy"):
                go("mod", "tidy", folder=source)
                go("build", "-o", str(program), ".", folder=source)
        return program


def installed(package: str, program: str) -> Path:
    """A program that Go brings and builds, once."""
    path = BUILT / "bin" / program
    if not path.exists():
        with told(f"{program} from the Go module proxy"):
            go("install", package, folder=HERE)
    return path


def go(*arguments: str, folder: Path) -> None:
    if shutil.which("go") is None:
        raise Unavailable("there is no 'go'")
    settings = {**os.environ, "GOBIN": str(BUILT / "bin"), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(["go", *arguments], cwd=folder, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"'go {' '.join(arguments[:2])}' failed: the module proxy does not give it, or it does not build")
