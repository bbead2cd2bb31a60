"""What an experiment leaves behind: data, plots, and one page of tables and checked claims.

`Report("ranked")` writes into experiments/results/ranked/: `README.md`, one `<name>.json` for each table and figure, one
`<name>.svg` for each figure, and `claims.json`. Every JSON file carries the run it came from (commit, versions, machine, date).

A full run takes hours, in results/ranked-full/, and can be stopped: what `piece` and `kept` did is stored in `pieces/` when it is
done, and is not done again by the run that goes on, nor by any after it. After `stop_after(minutes)` nothing new is begun.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

ROOT = Path(__file__).parent
Series = Mapping[str, Sequence[tuple[float, float]]]


class Enough(Exception):
    """The time that was given is over; the next run goes on here."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, judged by code. `reason` says why, where it fails or needs a word."""

    text: str
    holds: bool
    measured: str
    reason: str = ""


class Report:
    until: float | None = None
    """of `time.monotonic`"""

    def __init__(self, paper: str, *, title: str = "", size: str = "", full: bool = False) -> None:
        """`title` heads the page, `size` says at which size the run was made."""
        self.paper, self.full = paper, full
        self.folder = ROOT / "results" / (f"{paper}-full" if full else paper)
        self.title, self.size = title or paper, size
        self.claims: list[Claim] = []
        self.run = provenance()
        self._body: list[str] = []
        self._runs: list[dict[str, Any]] = []
        self.folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """The page, also of a run that was stopped."""
        if kind is None or kind is Enough:
            self.write(stopped=kind is Enough)

    def piece(self, act: Callable[..., None], *given: Any) -> None:
        """A part of the page: `act(self, *given)`, by its name."""
        before = len(self._body), len(self.claims)

        def told() -> dict[str, Any]:
            act(self, *given)
            said, claimed = self._body[before[0] :], self.claims[before[1] :]
            del self._body[before[0] :], self.claims[before[1] :]
            return {"body": said, "claims": [asdict(claim) for claim in claimed]}

        done = self.kept(act.__name__, told)
        self._body += done["body"]
        self.claims += [Claim(**claim) for claim in done["claims"]]

    def kept(self, name: str, act: Callable[[], Any]) -> Any:
        """What `act` gives, as JSON has it; in a full run that of a run before, if there was one."""
        if not self.full:
            return act()
        path = self.folder / "pieces" / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.json"
        if not path.exists():
            if self.until is not None and time.monotonic() > self.until:
                raise Enough(name)
            begun = time.process_time()
            value = act()
            path.parent.mkdir(exist_ok=True)
            done = {"run": self.run, "name": name, "cpu_seconds": round(time.process_time() - begun, 1), "value": value}
            half = path.with_suffix(".half")
            half.write_text(json.dumps(done, indent=1, default=_plain) + "\n")
            half.replace(path)
        stored = json.loads(path.read_text())
        self._runs.append(stored["run"])
        return stored["value"]

    def text(self, paragraph: str) -> None:
        self._body += [paragraph, ""]

    def table(self, name: str, rows: Sequence[Mapping[str, Any]], caption: str) -> None:
        """One row a mapping; the keys, in order of first appearance, are the columns."""
        self._dump(name, {"caption": caption, "rows": rows})
        self._body += [f"## {caption}", "", markdown(rows), "", f"Data: [{name}.json]({name}.json)", ""]

    def figure(
        self, name: str, series: Series, xlabel: str, ylabel: str, *, caption: str = "", logx: bool = False, logy: bool = False
    ) -> None:
        """One line for each name in `series`; points are (x, y)."""
        points = {label: [list(point) for point in line] for label, line in series.items()}
        self._dump(name, {"caption": caption, "x": xlabel, "y": ylabel, "series": points})
        figure, axes = pyplot.subplots(figsize=(6, 4))
        for (label, line), marker in zip(series.items(), "osD^vPX*<>hd" * 4, strict=False):
            axes.plot([x for x, _ in line], [y for _, y in line], marker=marker, label=label)
        axes.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if logx else "linear", yscale="log" if logy else "linear")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        figure.tight_layout()
        figure.savefig(self.folder / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)
        self._body += [
            f"## {caption or name}",
            "",
            f"![{caption or name}]({name}.svg)",
            "",
            f"Data: [{name}.json]({name}.json)",
            "",
        ]

    def claim(self, text: str, holds: bool, measured: str, reason: str = "") -> None:
        self.claims.append(Claim(text, bool(holds), measured, reason))

    def write(self, stopped: bool = False) -> None:
        """The page and the claims; tables and figures were written as they came."""
        self._dump("claims", {"claims": [asdict(claim) for claim in self.claims]})
        runs = list(dict.fromkeys(map(_sentence, self._runs or [self.run])))
        on = f"This run was stopped and is not whole: `python -m experiments --full {self.paper}` goes on with it."
        head = [f"# {self.title}", "", *([self.size, ""] if self.size else []), *([on, ""] if stopped else []), " ".join(runs), ""]
        judged = [
            {"claim": c.text, "verdict": "HOLDS" if c.holds else "FAILS", "measured": c.measured, "why": c.reason}
            for c in self.claims
        ]
        claims = ["## The paper's claims", "", markdown(judged), ""] if judged else []
        (self.folder / "README.md").write_text("\n".join([*head, *claims, *self._body]).rstrip() + "\n")

    def _dump(self, name: str, content: Mapping[str, Any]) -> None:
        text = json.dumps({"run": self.run, **content}, indent=1, default=_plain)
        (self.folder / f"{name}.json").write_text(text + "\n")


def stop_after(minutes: float | None) -> None:
    """From so many minutes on no piece is begun."""
    Report.until = None if minutes is None else time.monotonic() + 60 * minutes


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns), *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cpu_seconds(act: Callable[[], Any], repeats: int = 3) -> float:
    """Process CPU time of `act`, the least of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return min(times)


def provenance() -> dict[str, Any]:
    """Commit, versions, machine and date of this run."""
    return {
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "--untracked-files=no") else ""),
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "numba", "pyarrow")},
        "machine": {"model": _processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
    }


def _sentence(run: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    machine = f"{run['machine']['model']}, {run['machine']['cores']} cores"
    return f"Run of {run['date']} at commit {run['commit']}: Python {run['python']}, {versions}; {machine}."


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")] if cpuinfo.exists() else []
    return models[0].partition(":")[2].strip() if models else platform.processor() or platform.machine()


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays as JSON."""
    return value.tolist()
