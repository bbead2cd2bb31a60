"""The shape of the house in numbers: `python scripts/house.py [SOURCE ...]`, a column for each tree of sources."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

KERNELS = {"kernel", "inlined", "borrowing_kernel"}


def main(sources: list[Path]) -> None:
    columns = [measured(source) for source in sources]
    for name in columns[0]:
        print(f"{name:42}" + "".join(f"{column[name]!s:>22}" for column in columns))


def measured(source: Path) -> dict[str, object]:
    trees = {path: ast.parse(path.read_text()) for path in sorted(source.rglob("*.py"))}
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    kernels = [f for f in functions if KERNELS & {getattr(d, "id", "") for d in f.decorator_list}]
    folders = [sum(1 for path in folder.glob("*.py")) for folder in {path.parent for path in trees}]
    return {
        "modules": len(trees),
        "folders": len(folders),
        "most modules in a folder": max(folders),
        "lines": sum(path.read_text().count("\n") for path in trees),
        "longest file": max(path.read_text().count("\n") for path in trees),
        "imports from Topic down to the last": depth(source, trees),
        "kernels": len(kernels),
        "kernels with Any in their arguments": sum("Any" in ast.dump(f.args) for f in kernels),
        "longest argument list of a kernel": max(len(f.args.args) for f in kernels),
        "TYPE_CHECKING imports": sum("TYPE_CHECKING:" in path.read_text() for path in trees),
    }


def depth(source: Path, trees: dict[Path, ast.Module]) -> int:
    names = {".".join(path.relative_to(source.parent).with_suffix("").parts): path for path in trees}

    @cache
    def below(name: str) -> int:
        used = {m for m in imports(trees[names[name]], names) if m != name}
        return 1 + max(map(below, used), default=0)

    return below(next(name for name in names if name.endswith((".topic.topic", "engine.topic"))))


def imports(tree: ast.Module, names: dict[str, Path]) -> set[str]:
    """Modules that are imported when this one is: not those for the type checker alone."""
    used = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            used |= {m for m in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)) if m in names}
    return used


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]] or [Path(__file__).parent.parent / "src" / "tidings"])
