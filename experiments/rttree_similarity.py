"""Figures 13 and 14 of the location-aware paper: the ranking semantics, by alpha and by theta."""

from __future__ import annotations

from itertools import product

import numpy as np

from experiments.rttree_data import GROUPS, VOCABULARY
from experiments.rttree_race import microseconds, progress
from tidings.index.rttree.policy import POLICIES
from tidings.index.rttree.similarity import SimilarityIndex
from tidings.rank.similarity import idf

ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)
THETAS = (0.5, 0.6, 0.7, 0.8, 0.9)


FIGURE_13 = (
    "With theta = 0.7 the words alone suffice up to alpha = 0.3, and the place alone from 0.7 on (table: matches). What suffices "
    "by its words is read from the root's lists without a walk, which makes alpha = 0.1 the cheapest for short messages; 0.5 has "
    "the fewest matches."
)


def similarity_index(clauses, alpha, theta, weights, policy):
    n = len(clauses)
    return SimilarityIndex.build(
        clauses.box, clauses.word_start, clauses.word, np.full(n, alpha), np.full(n, theta), weights, policy
    )


def word_weights(clauses):
    return idf(np.bincount(clauses.word, minlength=VOCABULARY), len(clauses))


def figure_13(report, data, clauses):
    weights, rows = word_weights(clauses), []
    series = {group: [] for group in GROUPS}
    batches = {group: data.messages(group, 100 if group.startswith("short") else 20) for group in GROUPS}
    for alpha in ALPHAS:
        index = similarity_index(clauses, alpha, 0.7, weights, "R^t++")
        for group, batch in batches.items():
            before, found = index.stats, len(index.match_batch(batch)[0]) / len(batch)
            scored = (index.stats["verified"] - before["verified"]) / len(batch)
            rows.append({"alpha": alpha, "group": group, "matches": round(found), "entries scored": round(scored)})
            series[group].append((alpha, microseconds(index.match_batch, batch)))
        progress(f"Figure 13: alpha {alpha}")
    report.figure("figure_13", series, "alpha", "us a message", caption="Figure 13: varying alpha, theta = 0.7, R^t++", logy=True)
    report.table("figure_13_matches", rows, "Figure 13: matches and entries scored a message")
    holds = all(0 < int(np.argmin([y for _, y in line])) < len(line) - 1 for line in series.values())
    report.claim(
        "Figure 13: with growing alpha R^t++ first becomes faster and then slower",
        holds,
        "; ".join(f"{group} " + ", ".join(f"{y:.0f}" for _, y in line) + " us" for group, line in series.items()),
        "" if holds else FIGURE_13,
    )


def figure_14(report, data, clauses, rivals):
    """One index in memory after another; all must find as much."""
    alpha, weights, found = 0.5, word_weights(clauses), {}
    batches = {group: data.messages(group, 20 if group.startswith("short") else 5) for group in GROUPS}
    series = {group: {label: [] for label in (*POLICIES, *rivals)} for group in GROUPS}

    def measure(label, theta, match, matches):
        for group, batch in batches.items():
            number = matches(batch)
            assert found.setdefault((theta, group), number) == number, (label, theta, group)
            series[group][label].append((theta, microseconds(match, batch)))
        progress(
            f"Figure 14: theta {theta}, {label}: " + ", ".join(f"{group} {series[group][label][-1][1]:.0f} us" for group in GROUPS)
        )

    for theta, policy in product(THETAS, POLICIES):
        index = similarity_index(clauses, alpha, theta, weights, policy)
        measure(policy, theta, index.match_batch, lambda batch: len(index.match_batch(batch)[0]))  # noqa: B023
    for label, make in rivals.items():
        rival = make(clauses)
        for theta in THETAS:
            ask = lambda batch: rival.similar_batch(batch, alpha, theta, weights)  # noqa: B023, E731
            measure(label, theta, ask, ask)
    for group, lines in series.items():
        name = f"figure_14_{group.replace(' ', '_')}"
        report.figure(name, lines, "theta", "us a message", caption=f"Figure 14: varying theta, alpha = 0.5: {group}", logy=True)
    judge_thetas(report, series, list(rivals))


def judge_thetas(report, series, rivals):
    falls = {group: lines["R^t++"][-1][1] < lines["R^t++"][0][1] for group, lines in series.items()}
    ends = "; ".join(f"{group} {lines['R^t++'][0][1]:.0f} us to {lines['R^t++'][-1][1]:.0f} us" for group, lines in series.items())
    report.claim("Figure 14: filtering becomes easier as theta grows", all(falls.values()), f"R^t++ from theta 0.5 to 0.9: {ends}")
    for rival in ("R^t+", "R^t", *rivals):
        ratio = {
            group: np.mean([y for _, y in lines[rival]]) / np.mean([y for _, y in lines["R^t++"]])
            for group, lines in series.items()
        }
        report.claim(
            f"Figure 14: R^t++ is faster than {rival}",
            min(ratio.values()) > 1,
            ", ".join(f"{group} {value:.2f}x" for group, value in ratio.items()),
        )
