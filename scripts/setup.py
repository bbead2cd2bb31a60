"""Make `.venv` from the lock. Needs nothing but Python 3.11+; a second run has nothing to do and says nothing."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
READY = ENVIRONMENT / "ready"


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - this runs before anything has checked
        raise SystemExit(f"tidings needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make PYTHON=python3.12 setup")
    wanted = fingerprint()
    if READY.is_file() and READY.read_text() == wanted:
        return
    print("setting up .venv from requirements.lock (once, about a minute)", flush=True)
    if not (ENVIRONMENT / "bin" / "python").exists():
        venv.create(ENVIRONMENT, with_pip=True)
    pip("install", "--quiet", "--requirement", "requirements.lock")
    pip("install", "--quiet", "--no-deps", "--editable", ".")
    READY.write_text(wanted)
    warm()


def warm() -> None:
    """Kernels are compiled beside whatever comes next, which shares the work and needs not wait for it."""
    print("compiling kernels in the background (once, a few minutes; 'tidings warm' shows how far it is)", flush=True)
    command = ["nice", str(ENVIRONMENT / "bin" / "python"), "-m", "tidings", "warm"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(command, cwd=ROOT, start_new_session=True, **quiet)


def fingerprint() -> str:
    digest = hashlib.sha256(str(ROOT).encode())
    for name in ("requirements.lock", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def pip(*arguments: str) -> None:
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise SystemExit(f"set-up stopped: '{' '.join(command[1:])}' failed; the lines above say why. Run 'make setup' again.")


main()
