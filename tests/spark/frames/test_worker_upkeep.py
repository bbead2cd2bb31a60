"""A worker lets go of PySpark's archive, and imports from it as before."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from tidings.spark.frames.worker_upkeep import let_go_of_archives


def archive(path: Path, package: str) -> None:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{package}/__init__.py", "")
        for name in ("first", "second"):
            made.writestr(f"{package}/{name}.py", f"NAME = '{name}'")


def test_only_sparks_archives_are_let_go_and_can_be_imported_from_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sparks, users = str(tmp_path / "pyspark.zip"), str(tmp_path / "jobs.zip")
    archive(Path(sparks), "sparks_own_package")
    archive(Path(users), "users_own_package")
    monkeypatch.setattr(sys, "path", [sparks, users, *sys.path])
    assert importlib.import_module("sparks_own_package.first").NAME == "first"
    assert importlib.import_module("users_own_package.first").NAME == "first"

    let_go_of_archives()

    assert not [path for path in sys.path_importer_cache if path.startswith(sparks)]
    assert users in sys.path_importer_cache
    assert importlib.import_module("sparks_own_package.second").NAME == "second"
    assert importlib.import_module("users_own_package.second").NAME == "second"
