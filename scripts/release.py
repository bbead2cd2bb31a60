"""`make release`: what a release is made of, in `dist`, checked in an empty environment. It commits, tags and sends nothing.

`make wheel` has built the wheel with its kernels. Beside it come the sources, a bill of materials (CycloneDX) of what an
installation brings, and the changelog's section of this version. With `--write` that section is put into CHANGELOG.md in place of
Unreleased; without, the file stays as it is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
import venv
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST, BUILD, CHANGELOG = ROOT / "dist", ROOT / "build" / "release", ROOT / "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
EXAMPLE = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], module_relative=False).failed)"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python scripts/release.py", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the changelog's section into CHANGELOG.md")
    write = parser.parse_args().write
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    tools, empty = environment("tools", "--requirement", "requirements-release.lock"), environment("empty")
    run(tools, "-m", "build", "--sdist", "--outdir", str(DIST))
    sources, wheel = DIST / f"tidings-{version}.tar.gz", newest(f"tidings-{version}-*.whl")
    run(tools, "-m", "twine", "check", "--strict", str(sources), str(wheel))
    for package in (wheel, sources):
        install(
            empty,
            "--constraint",
            "requirements.lock",
            "--force-reinstall",
            *(["--no-deps"] if package == sources else []),
            str(package),
        )
        run(empty, "-c", EXAMPLE, str(ROOT / "README.md"), where=BUILD)
    bill = DIST / f"tidings-{version}.cdx.json"
    run(
        tools,
        "-m",
        "cyclonedx_py",
        "environment",
        "--output-reproducible",
        "--pyproject",
        "pyproject.toml",
        "-o",
        str(bill),
        str(empty),
    )
    section = DIST / f"changelog-{version}.md"
    today = datetime.now(UTC).date().isoformat()
    section.write_text(section_of(CHANGELOG.read_text(), version, today))
    if write:
        CHANGELOG.write_text(released(CHANGELOG.read_text(), version, today))
    print("ready:", *(path.name for path in (wheel, sources, bill, section)))


def section_of(changelog: str, version: str, date: str) -> str:
    """What stands under Unreleased, under the version's own heading."""
    if f"## {version} " in changelog:
        raise SystemExit(f"CHANGELOG.md has a section of {version} already: give pyproject.toml the next version")
    body = changelog.split(UNRELEASED, 1)[1].split("\n## ", 1)[0].strip()
    if not body:
        raise SystemExit("nothing stands under Unreleased in CHANGELOG.md: there is nothing to release")
    return f"## {version} ({date})\n\n{body}\n"


def released(changelog: str, version: str, date: str) -> str:
    """The changelog with that section, and an empty Unreleased before it."""
    before, rest = changelog.split(UNRELEASED, 1)
    older = rest.split("\n## ", 1)[1:]
    return f"{before}{UNRELEASED}\n{section_of(changelog, version, date)}" + "".join(f"\n## {section}" for section in older)


def environment(name: str, *wanted: str) -> Path:
    """A new environment's interpreter."""
    folder = BUILD / name
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    if wanted:
        install(python, "--no-deps", *wanted)
    return python


def install(python: Path, *what: str) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def newest(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(f"there is no dist/{pattern}: run 'make wheel'")
    return found[-1]


def run(python: Path, *arguments: str, where: Path = ROOT) -> None:
    print(">", *(argument if len(argument) < 60 else f"{argument[:57]}..." for argument in arguments), flush=True)
    if subprocess.run([str(python), *arguments], cwd=where, check=False).returncode:
        raise SystemExit("the release stopped: the lines above say why")


if __name__ == "__main__":
    sys.exit(main())
