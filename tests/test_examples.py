"""The examples run, and say what their readers expect."""

from __future__ import annotations

from examples import deals, stock_board


def test_deals(capsys):
    deals.main()
    said = capsys.readouterr().out
    assert "who matches, best first: [('ann', 2.0), ('cat', 1.0)]" in said
    assert "bob's list: ['h12', 'h11']" in said
    assert "promoted" in said


def test_stock_board(capsys):
    stock_board.main()
    said = capsys.readouterr().out
    assert "ann: Fir 3 left" in said
    assert "the two cheapest now: ['Oak 7', 'Elm 1']" in said
