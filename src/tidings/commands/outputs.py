"""What a command writes: tables for people, JSON lines with `--json` for programs; progress on long work."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")]
console = Console()
aside = Console(stderr=True)


def plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    return str(value)


def lines(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        sys.stdout.write(json.dumps(row, default=plain, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def show(rows: Iterable[Mapping[str, Any]], as_json: bool, *, nothing: str = "nothing") -> None:
    """Rows as a table with the columns of all of them; users' texts are shown as texts, not read as markup."""
    if as_json:
        lines(rows)
        return
    known = list(rows)
    if not known:
        console.print(nothing, style="dim", highlight=False)
        return
    names = list(dict.fromkeys(name for row in known for name in row))
    table = Table(header_style="bold", box=None, pad_edge=False)
    for name in names:
        table.add_column(Text(name), justify="right" if _numbers(known, name) else "left", overflow="fold")
    for row in known:
        table.add_row(*(Text(cell(row.get(name))) for name in names))
    console.print(table)


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, default=plain, ensure_ascii=False) if isinstance(value, dict | list | tuple) else str(plain(value))


def _numbers(rows: list[Mapping[str, Any]], name: str) -> bool:
    return all(isinstance(row.get(name), int | float | None) for row in rows)


def say(sentence: str) -> None:
    aside.print(sentence, markup=False, highlight=False, soft_wrap=True)


def progress() -> Progress:
    """A bar on the terminal, beside what the command writes."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=aside, transient=True)
