"""The wheel of `make wheel` in an empty environment with an empty cache: its first calls compile nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.wheel
def test_the_first_calls_of_an_installed_wheel_compile_nothing(tmp_path):
    wheel = max((ROOT / "dist").glob("tidings-*.whl"), key=os.path.getmtime)
    venv.create(tmp_path / "empty", with_pip=True)
    python = str(tmp_path / "empty" / "bin" / "python")
    # The lock's versions: what the wheel carries is read where versions fit.
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "requirements.lock", wheel], check=True)
    program = ROOT / "tests" / "compiling" / "first_calls.py"
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    settings = {**bare, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TIDINGS_KERNELS": "compiled"}
    said = subprocess.run([python, program, "--packed"], env=settings, cwd=tmp_path, capture_output=True, check=True).stdout
    counts = json.loads(said)
    assert counts["compiled"] == 0
    assert counts["loaded"] > 20
    assert str(tmp_path) in counts["tidings"]
    assert not list((tmp_path / "cache").rglob("*.nbc"))
    assert sys.version.split()[0] == counts["python"]
