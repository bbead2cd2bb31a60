"""The command says what it is, and what it lacks, also where there is no Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tidings as td

BARE = "import sys; sys.modules['pyspark'] = sys.modules['pandas'] = None; from tidings.cli import main; main()"


def said(*command: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("program", [("-m", "tidings"), ("-c", BARE)])
def test_it_says_what_it_is(program):
    status, text = said(*program, "--help")
    assert status == 0
    assert "submit" in text
    assert said(*program, "--version") == (0, f"tidings {td.__version__}\n")


def test_without_spark_a_job_is_refused_in_one_sentence(tmp_path):
    status, text = said("-c", BARE, "run", str(Path("demo/job.toml").absolute()))
    assert status == 1
    assert "pip install 'tidings[spark]'" in " ".join(text.split())
