"""What the experiments write: data, a plot, and claims that can fail."""

import json

import numpy as np
import pytest

from experiments import report


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "ROOT", tmp_path)
    monkeypatch.setattr(report, "_git", lambda *_: "abc")
    return report.Report("ranked", title="Ranked", size="Small size.")


def test_page_carries_tables_figures_and_both_verdicts(page):
    page.table("memory", [{"n": 10, "MB": np.float64(1.5)}, {"n": 20, "MB": 3.0, "note": "a|b"}], "Memory")
    page.figure("time", {"SOPT-R": [(1, 2.0), (2, 3.0)]}, "k", "us", caption="Time", logy=True)
    page.claim("smaller is faster", True, "2x")
    page.claim("all are equal", False, "3x apart", "they are not")
    page.write()
    text = (page.folder / "README.md").read_text()
    assert "| n | MB | note |" in text
    assert "| smaller is faster | HOLDS | 2x |" in text
    assert "| all are equal | FAILS | 3x apart | they are not |" in text
    assert "a\\|b" in text
    assert (page.folder / "time.svg").read_text().startswith("<?xml")


def test_data_files_carry_their_run(page):
    page.table("memory", [{"n": 10, "MB": np.arange(2)}], "Memory")
    data = json.loads((page.folder / "memory.json").read_text())
    assert data["rows"] == [{"n": 10, "MB": [0, 1]}]
    assert data["run"]["commit"] == "abc+"
    assert set(data["run"]["versions"]) == {"numpy", "numba", "pyarrow"}
