"""The examples on Spark run, and say what their readers expect."""

from __future__ import annotations

import pytest

from examples import spark_board, spark_match, spark_search
from tests.spark.samples import SPARK

pytestmark = SPARK


def test_match(spark, capsys):
    spark_match.main(spark)
    said = capsys.readouterr().out
    assert "the two best of each offer: e1 -> ann (2), e1 -> cat (1.5), e2 -> bob (1), e2 -> cat (1.5)" in said
    assert "after a change of subscriptions: e3 -> bob (1), e3 -> dan (3)" in said


def test_search(spark, capsys):
    spark_search.main(spark)
    said = capsys.readouterr().out
    assert "on 2 November: ann finds e2 (1), ann finds e3 (1), bob finds e1 (-2200), bob finds e3 (910)" in said
    assert "at Christmas: ann finds e2 (1), ann finds e3 (1), bob finds e3 (910)" in said
    assert "in a DataFrame: ann finds e7 (1), bob finds e7 (980)" in said


@pytest.mark.deep
def test_board(spark, capsys):
    spark_board.main(spark)
    said = capsys.readouterr().out
    assert "turn 0: ann: Fir 3 entered, rank 1, rent 800" in said
    assert "turn 1: ann: Elm 1 left, rank None, rent 900" in said
    assert "turn 2: ann: Elm 1 entered, rank 2, rent 1200" in said
