"""`tidings submit`: a job on a cluster that has Spark and Python but not tidings.

The environment is an archive of tidings and everything it needs beside PySpark, taken from the files of this installation and named
by a hash of their names and versions, so it is packed once. Spark unpacks it beside each executor (`--archives`), which finds it by
PYTHONPATH. It carries the kernels, compiled for a baseline CPU, which executors of this Python's version read; others compile them
once a machine, into a folder named by the same hash, since an application's own folder does not outlive it. The workers' `python3`
must be of this Python's minor version, and the topic's folder must be one that they see under the same path.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pyspark

import tidings
from tidings.compiling.content_cache import CARRIED
from tidings.errors import StorageError
from tidings.warm.warming import carry

LEFT_TO_SPARK = {"pyspark", "py4j"}
ENVIRONMENT = "environment"


def command(job: Path, master: str, changes: Sequence[str], packages: str | None, archive: Path) -> list[str]:
    """What is run: spark-submit with the archive and this program."""
    home = Path(pyspark.__file__).parent
    key = archive.name.split(".")[0]
    settings = {
        "spark.executorEnv.PYTHONPATH": f"./{ENVIRONMENT}",
        "spark.executorEnv.NUMBA_CACHE_DIR": f"/tmp/{key}",
        "spark.pyspark.python": "python3",
        "spark.pyspark.driver.python": sys.executable,
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    if packages:
        options += ["--packages", packages]
    sets = [part for change in changes for part in ("--set", change)]
    program = Path(__file__).with_name("submitted_job.py")
    archives = ["--archives", f"{archive}#{ENVIRONMENT}"]
    return [str(home / "bin" / "spark-submit"), "--master", master, *archives, *options, str(program), str(job), master, *sets]


def submit(job: Path, master: str, changes: Sequence[str], packages: str | None, folder: Path, kernels: bool) -> int:
    """Pack the environment, with compiled kernels if they are wanted, submit the job, and wait for its end; the exit status."""
    carried = folder / "carried" if kernels else None
    if carried is not None:
        carry(carried)
    return subprocess.run(command(job, master, changes, packages, pack(folder, carried)), check=False).returncode


def pack(folder: Path, carried: Path | None = None) -> Path:
    """The archive of this installation's tidings and what it needs, made if there is none of these versions and kernels."""
    needed = closure("tidings")
    root = Path(tidings.__file__).parent
    sources = sorted(path for path in root.rglob("*.py"))
    digest = hashlib.sha256("".join(f"{d.name}{d.version}" for d in needed).encode())
    for path in sources:
        digest.update(path.read_bytes())
    kernels = sorted(path for path in carried.rglob("*.nb?")) if carried is not None else []
    digest.update("".join(path.name for path in kernels).encode())
    archive = folder / f"tidings-{digest.hexdigest()[:16]}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = archive.with_suffix(".partial")
        with tarfile.open(partial, "w:gz", compresslevel=1) as tar:
            for path in sources:
                tar.add(path, f"tidings/{path.relative_to(root)}")
            for path in kernels:
                tar.add(path, f"tidings/{CARRIED.relative_to(root)}/{path.relative_to(carried or path)}")
            for distribution in needed:
                add_files(tar, distribution)
        partial.rename(archive)
    return archive


def add_files(tar: tarfile.TarFile, distribution: metadata.Distribution) -> None:
    if distribution.files is None:
        raise StorageError(f"{distribution.name} {distribution.version} does not say which files it has: install it with pip")
    for file in distribution.files:
        path = Path(str(distribution.locate_file(file)))
        if ".." not in file.parts and path.is_file() and path.suffix != ".pyc":
            tar.add(path, str(file))


def closure(name: str) -> list[metadata.Distribution]:
    """The distributions that `name` with its extra `spark` needs, by name, without itself and what Spark brings."""
    found: dict[str, metadata.Distribution] = {}
    todo = requirements(metadata.distribution(name), extra="spark")
    while todo:
        one = todo.pop()
        if one not in found and one not in LEFT_TO_SPARK:
            found[one] = metadata.distribution(one)
            todo += requirements(found[one])
    return [found[one] for one in sorted(found)]


def requirements(distribution: metadata.Distribution, extra: str = "") -> list[str]:
    """Names of what a distribution needs here; of what is for an extra only that one's."""
    names = []
    for text in distribution.requires or ():
        name, _, marker = text.partition(";")
        wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        if (wanted is None or wanted[1] == extra) and installed(match_name(name)):
            names.append(match_name(name))
    return names


def match_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def installed(name: str) -> bool:
    """Whether it is here; a requirement of another platform is not."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
