"""Find the Java that Spark needs, and get one where there is none; the path of what serves goes to `build/java-home`.

Looked for in JAVA_HOME, on the PATH, in the usual folders, and in `.java` of this project. Where none is new enough: `install-jdk`
(PyPI) puts a Temurin into `.java`, if its server can be reached; else apt-get installs one, where this runs as root; else one
sentence says what to do. Needs nothing but Python 3.11+ and, for `install-jdk`, the environment that `scripts/setup.py` made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / ".java"
FOUND = ROOT / "build" / "java-home"
NEEDED = 17
USUAL = ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines", "/opt/java")
PACKAGE = f"openjdk-{NEEDED}-jre-headless"
HOW = f"Install it ('apt-get install {PACKAGE}', 'brew install openjdk@{NEEDED}') or point JAVA_HOME at one."
FETCH = "import jdk, sys; jdk.install(sys.argv[1], jre=True, path=sys.argv[2])"


def main() -> None:
    home = found() or fetched() or installed()
    if home is None:
        raise SystemExit(f"Spark needs Java {NEEDED} or newer; none was found and none could be fetched. {HOW}")
    FOUND.parent.mkdir(exist_ok=True)
    FOUND.write_text(str(home))


def found() -> Path | None:
    return next((home for home in candidates() if version(home) >= NEEDED), None)


def candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    for folder in (*map(Path, USUAL), OWN):
        for java in sorted(folder.glob("**/bin/java")) if folder.is_dir() else ():
            yield java.parent.parent


def version(home: Path) -> int:
    """0 where there is no Java that runs."""
    try:
        said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    named = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(named[1]) if named else 0


def fetched() -> Path | None:
    print(f"no Java {NEEDED} found: fetching one into {OWN.name}/", flush=True)
    python = str(ROOT / ".venv" / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "install-jdk"]
    try:
        if subprocess.run(pip, check=False).returncode == 0:
            OWN.mkdir(exist_ok=True)
            subprocess.run([python, "-c", FETCH, str(NEEDED), str(OWN)], capture_output=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found()


def installed() -> Path | None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return None
    print(f"installing {PACKAGE} by apt-get", flush=True)
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", PACKAGE]):
        if subprocess.run(command, check=False, **quiet).returncode:  # type: ignore[call-overload]
            return None
    return found()


if __name__ == "__main__":
    main()
