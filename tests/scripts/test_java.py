"""Each way in which set-up comes to a Java: named, on the PATH, in the project's folder; or none, and one sentence."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

REAL = Path(shutil.which("java") or "/java").resolve().parent.parent


@pytest.fixture
def java(tmp_path, monkeypatch) -> ModuleType:
    """The script, in a project of its own on a machine that has no Java."""
    spec = importlib.util.spec_from_file_location("java", "scripts/java.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, value in {
        "USUAL": (),
        "ROOT": tmp_path,
        "OWN": tmp_path / ".java",
        "FOUND": tmp_path / "build" / "java-home",
    }.items():
        monkeypatch.setattr(script, name, value)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return script


def put(folder: Path) -> Path:
    """A home that runs this machine's Java."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text(f'#!/bin/sh\nexec "{REAL}/bin/java" "$@"\n')
    (folder / "bin" / "java").chmod(0o755)
    return folder


def test_the_java_that_is_named_is_taken(java, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(put(tmp_path / "named")))
    java.main()
    assert java.FOUND.read_text() == str(tmp_path / "named")


def test_the_java_on_the_path_is_taken(java, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(put(tmp_path / "on-path") / "bin"))
    java.main()
    assert java.FOUND.read_text() == str(tmp_path / "on-path")


def test_the_java_in_the_projects_folder_is_taken(java, tmp_path):
    put(tmp_path / ".java" / "jdk-17")
    java.main()
    assert java.FOUND.read_text() == str(tmp_path / ".java" / "jdk-17")


def test_an_old_java_and_a_file_that_is_none_are_passed_over(java, tmp_path, monkeypatch):
    old = tmp_path / "old" / "bin"
    old.mkdir(parents=True)
    (old / "java").write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    (old / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert java.version(tmp_path / "old") == 8
    assert java.version(tmp_path) == 0
    assert java.found() is None


def test_where_nothing_can_be_got_one_sentence_says_what_to_do(java, capfd):
    """In a project without an environment to fetch one by, where there is no apt-get."""
    with pytest.raises(SystemExit, match=r"none was found and none could be fetched\. Install it \('apt-get install"):
        java.main()
    assert capfd.readouterr().out == "no Java 17 found: fetching one into .java/\n"
    assert not java.FOUND.exists()
