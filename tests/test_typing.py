"""A type checker refuses what a topic would refuse: keywords are spelled out in every signature."""

from __future__ import annotations

from pathlib import Path

from mypy import api

PROGRAM = """
import tidings as td

deals = td.Topic("deals", {"price": td.Number()})
deals.subscribe("a", "price < 5", k=3, window="1 day", by="-price", owner="u1", tags=["t"])
deals.update("a", k=None)
deals.subscribe("b", k="three")
deals.subscribe("c", windw=3)
deals.update("a", windw=3)
deals.preview("price < 5", ovr="7 days")
deals.publish({"price": 1}, bodys=True)
td.Words(languge="english")
far = td.connect("http://127.0.0.1:8080")["deals"]
far.subscribe("a", "price < 5", k=3, window="1 day")
far.subscribe("a", k="three")
far.subscribe("a", windw=3)
far.update("a", windw=3)
"""
REFUSED = {7: "arg-type", 8: "call-arg", 9: "call-arg", 10: "call-arg", 11: "call-overload", 12: "call-arg"}
REFUSED |= {15: "arg-type", 16: "call-arg", 17: "call-arg"}


def test_mistyped_keywords_are_refused(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    root = Path(__file__).parents[1]
    said, errors, _ = api.run(["--config-file", str(root / "pyproject.toml"), "--follow-imports", "silent", str(program)])
    assert not errors, errors
    found = {int(line.split(":")[1]): line.rsplit("[", 1)[1].rstrip("]") for line in said.splitlines() if ": error:" in line}
    assert found == REFUSED, said
