"""The recipes' place in the navigation of `zensical.toml`, from the titles of the pages that are there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "zensical.toml"
RECIPES = ROOT / "docs" / "recipes"
BEGIN, END = "  # The recipes that are there, by `make docs`.\n", "  # End of recipes.\n"


def main() -> None:
    PAGE.write_text(generated())


def generated() -> str:
    before, rest = PAGE.read_text().split(BEGIN)
    return f"{before}{BEGIN}{entries()}{END}{rest.split(END)[1]}"


def entries() -> str:
    pages = sorted(RECIPES.glob("*.md"))
    if not pages:
        return ""
    lines = [f'    {{ "{title(page)}" = "recipes/{page.name}" }},\n' for page in pages]
    return '  { "Recipes" = [\n' + "".join(lines) + "  ] },\n"


def title(page: Path) -> str:
    return page.read_text().splitlines()[0].removeprefix("# ").replace('"', "'")
