"""`make docs`: build the site of `zensical.toml` into `build/site`, strictly: a warning ends it.

Zensical and mkdocstrings have an environment of their own, `build/site-environment`, made of requirements-docs.lock; they read the
sources and import none of them.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements-docs.lock"
ENVIRONMENT = ROOT / "build" / "site-environment"
READY = ENVIRONMENT / "ready"
SITE = ROOT / "build" / "site"


def main() -> None:
    set_up()
    if subprocess.run(command(), cwd=ROOT, check=False).returncode:
        raise SystemExit("the site was not built: the lines above say why")
    print(f"the site is in {SITE.relative_to(ROOT)}: open index.html, or python -m http.server -d {SITE.relative_to(ROOT)}")


def command() -> list[str]:
    return [str(ENVIRONMENT / "bin" / "zensical"), "build", "--strict", "--clean"]


def set_up() -> None:
    wanted = LOCK.read_text()
    if READY.is_file() and READY.read_text() == wanted:
        return
    print("setting up build/site-environment from requirements-docs.lock (once)", flush=True)
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if subprocess.run([*pip, "--requirement", str(LOCK)], cwd=ROOT, check=False).returncode:
        raise SystemExit("set-up stopped: pip could not install requirements-docs.lock; the lines above say why")
    READY.write_text(wanted)


if __name__ == "__main__":
    sys.exit(main())
