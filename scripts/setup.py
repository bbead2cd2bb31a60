"""Make `.venv` from the lock. Needs nothing but Python 3.11+; a second run has nothing to do and says nothing.

uv installs, in half of pip's time; where it cannot (an index or a certificate that only pip is told of), pip does.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
READY = ENVIRONMENT / "ready"
INTERPRETER = ENVIRONMENT / "bin" / "python"
PIP = (str(INTERPRETER), "-m", "pip", "--disable-pip-version-check")
UV = ENVIRONMENT / "bin" / "uv"


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - this runs before anything has checked
        raise SystemExit(f"tidings needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make PYTHON=python3.12 setup")
    wanted = fingerprint()
    if READY.is_file() and READY.read_text() == wanted:
        return
    print("setting up .venv from requirements.lock (once, about a minute)", flush=True)
    if not INTERPRETER.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    install("--requirement", "requirements.lock")
    install("--no-deps", "--editable", ".")
    READY.write_text(wanted)
    warm()


def warm() -> None:
    """Kernels are compiled beside whatever comes next, which shares the work and needs not wait for it."""
    print("compiling kernels in the background (once, a few minutes; 'tidings warm' shows how far it is)", flush=True)
    command = ["nice", str(INTERPRETER), "-m", "tidings", "warm"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(command, cwd=ROOT, start_new_session=True, **quiet)


def fingerprint() -> str:
    digest = hashlib.sha256(str(ROOT).encode())
    for name in ("requirements.lock", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def install(*what: str) -> None:
    if not UV.exists():
        run(*PIP, "install", "--quiet", "uv")
    if run(UV, "pip", "install", "--quiet", "--system-certs", "--python", str(INTERPRETER), *what):
        return
    print("uv could not install; trying pip", flush=True)
    command = [*PIP, "install", "--quiet", *what]
    if not run(*command):
        raise SystemExit(f"set-up stopped: '{' '.join(command[1:])}' failed; the lines above say why. Run 'make setup' again.")


def run(*command: str | Path) -> bool:
    try:
        return not subprocess.run(command, cwd=ROOT, check=False).returncode
    except OSError:
        return False


main()
