"""The minors of PySpark that are supported beside the locked one: `match` and `notify` give the embedded engine's answers there.

Each has an environment in build/, of its PySpark and, for all else, this one. It runs tests of `transforms` as they are, all minors
at the same time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

MINORS = ("4.2.1", "4.3.0")
TESTS = (
    "test_match.py::test_streaming_pins_one_manifest_a_micro_batch",
    "test_notify.py::test_batch_replays_event_time[3]",
    "test_notify.py::test_streaming_with_changes_in_between_equals_the_embedded_engine",
)
ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.minors, pytest.mark.xdist_group("programs")]


def environment_of(version: str) -> Path:
    """The Python of an environment with this PySpark, made if there is none."""
    folder = ROOT / "build" / f"pyspark-{version}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, clear=True)
        inside = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
        Path(inside, "ours.pth").write_text(sysconfig.get_path("purelib"))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", f"pyspark=={version}"], check=True)
        (folder / "ready").touch()
    return python


def run_tests(version: str) -> subprocess.CompletedProcess[str]:
    python = environment_of(version)
    # The workers' path too: a folder that a .pth file adds has its own .pth files left unread, so tidings is not found by it.
    path = os.pathsep.join(str(folder) for folder in (ROOT / "src", ROOT))
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "PYTHONPATH": path}
    which = subprocess.run([python, "-c", "import pyspark; print(pyspark.__version__)"], capture_output=True, text=True, check=True)
    assert which.stdout.strip() == version
    chosen = [f"tests/spark/transforms/{test}" for test in TESTS]
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "spark", *chosen]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def runs():
    with ThreadPoolExecutor(len(MINORS)) as pool:
        yield {version: pool.submit(run_tests, version) for version in MINORS}


@pytest.mark.parametrize("version", MINORS)
def test_match_and_notify_equal_the_embedded_engine(runs: dict[str, Future[subprocess.CompletedProcess[str]]], version):
    done = runs[version].result()
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"{len(TESTS)} passed" in done.stdout
