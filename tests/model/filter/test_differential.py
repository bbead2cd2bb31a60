"""Our clauses against cql2's own `matches`: 2,000 random filters x 60 random events.

cql2 raises on a filter it cannot reduce to a truth value, which is what it makes of a missing attribute: that is "does not match".
What cql2 0.6 answers differently from the standard is not drawn here and stands, each with its case, in `test_filter_deviations`.
"""

from __future__ import annotations

import json
import random
import warnings

import cql2
import pytest

from tests.model.filter.samples import SCHEMA, random_event, random_filter
from tidings.errors import FilterError, NeverMatchesWarning
from tidings.model.filter.compile import compile_filter
from tidings.model.filter.residue import compile_residue

FILTERS, EVENTS, SEED, SHARDS = 2_000, 60, 20261115, 4


def judge(expression, item) -> bool:
    try:
        return expression.matches(item)
    except Exception:  # noqa: BLE001 - cql2 raises plain Exception("could not reduce expression to boolean")
        return False


def compiled(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        return compile_filter(SCHEMA, text, limit=256)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_clauses_agree_with_cql2(shard):
    seed = SEED + shard
    print(f"seed {seed}")
    r = random.Random(seed)
    events = [random_event(r) for _ in range(EVENTS)]
    answers = set()
    for _ in range(FILTERS // SHARDS):
        text = random_filter(r)
        clauses, expression = compiled(text), cql2.Expr(text)
        for values, item in events:
            ours, theirs = any(clause.holds(SCHEMA, values) for clause in clauses), judge(expression, item)
            answers.add(ours)
            assert ours == theirs, f"seed {seed}: {text}\n{json.dumps(item)}\ntidings {ours}, cql2 {theirs}\n{clauses}"
    assert answers == {True, False}


def test_every_form_of_a_filter_means_the_same():
    """Text, JSON text, a dict, one clause a splitting leaf, and residues rebuilt from their source."""
    r = random.Random(SEED)
    events = [random_event(r)[0] for _ in range(40)]
    for _ in range(300):
        text = random_filter(r)
        tree = cql2.Expr(text).to_json()
        forms = [compiled(text), compiled(json.dumps(tree)) if isinstance(tree, dict) else compiled(text)]
        forms.append([_rebuilt(clause) for clause in forms[0]])
        forms.append(_unsplit(text, forms[0]))
        for values in events:
            answers = {any(clause.holds(SCHEMA, values) for clause in clauses) for clauses in forms}
            assert len(answers) == 1, f"{text} on {values}"


def _unsplit(text, clauses):
    """The filter under the least limit that it still compiles to, where leaves that would split are residues."""
    for limit in range(1, len(clauses)):
        try:
            return compile_filter(SCHEMA, text, limit)
        except FilterError:
            continue
    return clauses


def _rebuilt(clause):
    residue = tuple(compile_residue(SCHEMA, r.source) for r in clause.residue)
    assert residue == clause.residue
    return type(clause)(
        clause.ranges, clause.within, clause.without, clause.nulls, clause.present, clause.box, clause.words, residue
    )
