"""The tables of `evidence.md`, of every stored result: written to `build/docs/evidence.md`, which the page takes in.

A result of `benchmarks/results` is told with the first paragraph of the benchmark that made it, its command, its run and its rows,
whatever their shape: a new file needs nothing here. Papers are told by their judged claims, the soak by its totals.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from experiments.report import markdown

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "build" / "docs" / "evidence.md"
PAPERS, RESULTS, SOAK = ROOT / "experiments" / "results", ROOT / "benchmarks" / "results", ROOT / "reliability" / "reliability.json"
CONSOLE = ROOT / "reliability" / "console.json"
COMMANDS = {
    "engine": "python -m benchmarks.engine --full",
    "kernels-full": "python -m benchmarks.kernels --full",
    "compare": "python -m benchmarks.compare OLD",
    **{f"compare-{what}": f"python -m benchmarks.compare OLD {what}" for what in ("words", "topkw", "spark")},
    "peers": "make peers",
}
"""Where it is not `python -m benchmarks.NAME`."""
LEFT = frozenset({"heap", "nodes", "listeners", "data", "code", "native", "process"})
"""What a page holds."""
RUN = frozenset({"run", "commit", "date", "python", "versions", "machine"})
WIDE = 7
"""A table of more columns, and fewer rows, is turned."""
Row = dict[str, Any]


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(generated())


def generated() -> str:
    papers = [line for folder in sorted(PAPERS.iterdir()) if folder.is_dir() for line in of_paper(folder)]
    benchmarks = [line for path in sorted(RESULTS.glob("*.json")) for line in of_benchmark(path)]
    return "\n".join([*summary(), *papers, "## Benchmarks", "", *benchmarks, *of_soak(), *of_console()]) + "\n"


def summary() -> list[str]:
    """How many claims of each paper hold, first of all."""
    rows = []
    for path in sorted(PAPERS.glob("*/claims.json")):
        claims = json.loads(path.read_text())["claims"]
        held = sum(claim["holds"] for claim in claims)
        rows.append(
            {"paper": f"[{path.parent.name}](#{path.parent.name})", "claims": len(claims), "hold": held, "fail": len(claims) - held}
        )
    return ["## The papers' claims", "", markdown(rows), ""]


def of_paper(folder: Path) -> list[str]:
    stored = json.loads((folder / "claims.json").read_text())
    title = (folder / "README.md").read_text().splitlines()[0].lstrip("# ")
    rows = [
        {
            "claim": claim["text"],
            "": "holds" if claim["holds"] else "**fails**",
            "measured": claim["measured"],
            "why": claim["reason"],
        }
        for claim in stored["claims"]
    ]
    paper, _, full = folder.name.partition("-")
    said = f"`python -m experiments {'--full ' if full else ''}{paper}`; `experiments/results/{folder.name}`."
    return [f"### {title} {{ #{folder.name} }}", "", f"{said} {told(stored['run'])}", "", markdown(rows), ""]


def of_benchmark(path: Path) -> list[str]:
    stored = json.loads(path.read_text())
    stored = stored[-1] if isinstance(stored, list) else stored
    run = stored.get("run", stored)
    name = path.stem.partition("-")[0]
    module = ROOT / "benchmarks" / (f"{name}/__init__.py" if (ROOT / "benchmarks" / name).is_dir() else f"{name}.py")
    command = COMMANDS.get(path.stem, f"python -m benchmarks.{name}")
    lines = [
        f"### {path.stem}",
        "",
        *(about(module) if module.is_file() else []),
        f"`{command}`; `benchmarks/results/{path.name}`. {told(run)}",
        "",
    ]
    single = {name: value for name, value in stored.items() if name not in RUN and not isinstance(value, Mapping | list)}
    if single:
        lines += [markdown([flat(single)]), ""]
    for name, rows in tables(stored):
        lines += [f"**{name}**", "", markdown(turned(rows)), ""]
    return lines


def about(module: Path) -> list[str]:
    """What the benchmark says of itself, up to its first empty line."""
    said = (ast.get_docstring(ast.parse(module.read_text())) or "").split("\n\n")[0]
    return [" ".join(said.split()), ""]


def told(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    return f"Run of {run['date']}, commit {run['commit']}, Python {run['python']}, {machine['model']}, {machine['cores']} cores."


def tables(stored: Mapping[str, Any]) -> Iterator[tuple[str, list[Row]]]:
    """Lists of rows as they are; an object of rows, or of measurements, as rows with its names in the first column."""
    for name, value in stored.items():
        if name in RUN or name == "run again" or not isinstance(value, Mapping | list) or not value:
            continue
        if isinstance(value, list):
            yield name, [flat(row) if isinstance(row, Mapping) else {name: row} for row in value]
        elif all(isinstance(row, Mapping | list) for row in value.values()):
            yield (
                name,
                [
                    {"what": what, **(flat(row) if isinstance(row, Mapping) else {"median": cell(row)})}
                    for what, row in value.items()
                ],
            )
        else:
            yield name, [flat(value)]


def flat(row: Mapping[str, Any]) -> Row:
    """Nested names joined by a dot, lists of numbers by their median."""
    found: Row = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": inside for inner, inside in flat(value).items()}
        else:
            found[name] = cell(value)
    return found


def cell(value: Any) -> Any:
    if isinstance(value, list):
        numbers = [item for item in value if isinstance(item, int | float)]
        return f"{median(numbers):.4g} (median of {len(numbers)})" if numbers else f"{len(value)} rows"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def turned(rows: Sequence[Row]) -> list[Row]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if len(columns) <= WIDE or len(rows) >= len(columns):
        return list(rows)
    heads = [str(row.get("what") or row.get("workload") or number) for number, row in enumerate(rows, 1)]
    names = [column for column in columns if column not in ("what", "workload")]
    return [{"": name, **{head: row.get(name, "") for head, row in zip(heads, rows, strict=True)}} for name in names]


def of_soak() -> list[str]:
    stored = json.loads(SOAK.read_text())
    hours = sum(stored["seconds"].values()) / 3600
    said = f"`make soak`; `reliability/reliability.json`. {hours:.1f} hours in all; [every failure and its cause](reliability.md)."
    rows = [{"what": what, "how often": f"{count:,}"} for what, count in sorted(stored["totals"].items())]
    return ["## Reliability", "", said, "", markdown(rows), ""]


def of_console() -> list[str]:
    """What the page held and how it kept up, by thirds of its run."""
    stored = json.loads(CONSOLE.read_text())
    samples, third = stored["samples"], len(stored["samples"]) // 3
    said = (
        f"`python -m tests.console.memory`; `reliability/console.json`. {len(samples)} minutes with the page open; "
        f"{stored['asked for a second']:,} events a second asked for, {stored['published']:,} published; every room looked into "
        f"once a minute. `tidings serve --demo` showed who was told {stored['demo, s']['seen']} s after it was started, "
        f"for which it took {stored['demo, s']['processor']} s of a processor. "
        f"{told(stored['run'])} {stored['chromium']}. The machine had other work beside."
    )
    parts = {f"minutes {first + 1} to {first + third}": samples[first : first + third] for first in range(0, 3 * third, third)}
    names = [name for name in samples[0] if name not in ("seconds", "said")]
    how = [(name, min if name in LEFT else median) for name in names]
    rows = [{"": name, **{when: cell(float(of(one[name] for one in part))) for when, part in parts.items()}} for name, of in how]
    note = "Bytes and counts: the least, which is what garbage collection leaves. Paces: medians."
    return ["## The console, open for minutes", "", said, "", note, "", markdown(rows), ""]


if __name__ == "__main__":
    main()
