"""Say clearly when the Java that Spark needs is missing or too old."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NEEDED = 17
HOW = "Install it ('apt-get install openjdk-17-jre-headless', 'brew install openjdk@17') or point JAVA_HOME at one."


def main() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise SystemExit(f"Spark needs Java {NEEDED} or newer; none was found{f' at {java}' if java else ''}. {HOW}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < NEEDED:
        raise SystemExit(f"Spark needs Java {NEEDED} or newer; {java} is {found[1] if found else said.strip()!r}. {HOW}")


main()
