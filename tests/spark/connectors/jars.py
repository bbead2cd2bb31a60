"""The jars of connectors, which the PySpark package lacks, from Maven Central."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
JARS = HERE / "target"


class NoMaven(Exception):
    """Maven Central cannot be reached, or there is no Maven."""


def fetch(profile: str) -> list[Path]:
    """The jars of a profile of the pom, brought once."""
    folder = JARS / profile
    if not any(folder.glob("*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        try:
            done = subprocess.run(
                ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), f"-P{profile}", *goal], capture_output=True, text=True
            )
        except FileNotFoundError as error:
            raise NoMaven(f"there is no 'mvn' to bring the jars of {profile}") from error
        if done.returncode:
            raise NoMaven(f"mvn cannot bring the jars of {profile}: {(done.stdout + done.stderr).strip().splitlines()[0]}")
    return sorted(folder.glob("*.jar"))
