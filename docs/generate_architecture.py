"""The drawing in ARCHITECTURE.md, made from the imports as they are: `python -m docs.generate`.

A test (`tests/test_architecture.py`) says when the page is stale, when a walk names a file that is not there, and when a room
has no page of its own.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tidings"
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- drawn: do not edit by hand -->", "<!-- end of what is drawn -->"
BELOW = ("errors", "_jit", "_lazy", "compiling")
"""Everybody may use these; arrows to them would hide the others."""


def main() -> None:
    PAGE.write_text(with_drawing(PAGE.read_text()))


def with_drawing(page: str) -> str:
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{drawing()}\n{END}{after}"


def drawing() -> str:
    modules = {name_of(path): path for path in SOURCE.rglob("*.py")}
    rooms = Counter(room_of(name) for name, path in modules.items() if path.name != "__init__.py")
    arrows = Counter[tuple[str, str]]()
    for name, path in modules.items():
        if path != SOURCE / "__init__.py":
            arrows.update((room_of(name), room_of(used)) for used in imports(path, modules))
    drawn = sorted((a, b) for a, b in arrows if a != b and b not in BELOW and a not in BELOW)
    lines = ["```mermaid", "flowchart LR"]
    lines += [f'  {key(room)}["{room}<br/>{count} modules"]' for room, count in sorted(rooms.items()) if room not in BELOW]
    lines += [f"  {key(b)} --> {key(a)}" for a, b in drawn if not implied(a, b, drawn)]
    return "\n".join([*lines, "```", "", *table(rooms)])


def implied(a: str, b: str, drawn: list[tuple[str, str]]) -> bool:
    """Whether `a` reaches `b` over another room that it uses: such an arrow is left out."""
    todo, seen = [c for x, c in drawn if x == a and c != b], set[str]()
    while todo:
        room = todo.pop()
        if room == b:
            return True
        if room not in seen:
            seen.add(room)
            todo += [c for x, c in drawn if x == room]
    return False


def table(rooms: Counter[str]) -> list[str]:
    rows = ["| folder | files | what it answers |", "|---|---|---|"]
    for folder in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        name = "tidings" if folder == SOURCE else str(folder.relative_to(SOURCE))
        files = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        rows.append(f"| `{name}` | {files} | {' '.join(said.split(chr(10) * 2)[0].split())} |")
    return rows


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """`match` and `model` are drawn whole; so is every other folder of the first level, and single modules by themselves."""
    return module.partition(".")[0]


def imports(path: Path, modules: dict[str, Path]) -> set[str]:
    used = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tidings."):
            module = node.module.removeprefix("tidings.")
            used |= {f"{module}.{a.name}" if f"{module}.{a.name}" in modules else module for a in node.names}
    return used


def key(room: str) -> str:
    return room.replace(".", "_")
