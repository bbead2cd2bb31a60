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


def told(page, done: list[str]) -> None:
    done.append("told")
    rows = [page.kept(f"row {n}", lambda n=n: done.append(f"row {n}") or {"n": n}) for n in range(3)]
    page.table("rows", rows, "Rows")
    page.claim("three rows", len(rows) == 3, f"{len(rows)}")


def full_page(size: str = "") -> report.Report:
    return report.Report("ranked", title="Ranked", size=size, full=True)


def test_a_full_run_that_is_stopped_goes_on_where_it_was(page, monkeypatch):
    done: list[str] = []

    def power_cut(page, done):
        told(page, done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), full_page() as first:
        first.piece(power_cut, done)
    assert done == ["told", "row 0", "row 1", "row 2"]
    assert not (first.folder / "README.md").exists()
    done.clear()
    for _ in range(2):
        with full_page() as second:
            second.piece(told, done)
        assert done == ["told"]
        text = (second.folder / "README.md").read_text()
        assert text.count("| three rows | HOLDS | 3 |") == 1
        assert text.count("## Rows") == 1


def test_nothing_is_begun_when_the_time_is_over_and_the_page_says_so(page, monkeypatch):
    monkeypatch.setattr(report.Report, "until", None)
    done: list[str] = []
    with full_page() as first:
        first.kept("row 0", lambda: {"n": 0})
    report.stop_after(0)
    with pytest.raises(report.Enough, match="told"), full_page() as second:  # noqa: PT012 - what was kept is given before
        assert second.kept("row 0", lambda: done.append("again")) == {"n": 0}
        second.piece(told, done)
    assert not done
    assert "not whole" in (second.folder / "README.md").read_text()
