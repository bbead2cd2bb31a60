"""Build a wheel that carries its kernels, compiled for this machine's baseline CPU, into `dist`. Run by `make wheel`.

The wheel can be installed anywhere: where versions or CPU do not fit, what it carries is not read.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tidings.compiling.content_cache import CARRIED
from tidings.warm.warming import carry

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    carry(ROOT / "build" / "carried")
    # The builder takes what lies in the package; the sources' own runs must not.
    shutil.copytree(ROOT / "build" / "carried", CARRIED, dirs_exist_ok=True)
    try:
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "."], cwd=ROOT, check=True
        )
    finally:
        shutil.rmtree(CARRIED)


main()
