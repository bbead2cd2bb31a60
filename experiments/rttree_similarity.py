"""Figures 13 and 14 of the location-aware paper: the ranking semantics, by alpha and by theta."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from experiments.rttree_data import GROUPS, LOCAL, VOCABULARY, Twitter
from experiments.rttree_race import microseconds, progress
from tidings.index.rttree.policy import POLICIES
from tidings.index.rttree.similarity import SimilarityIndex
from tidings.rank.similarity import idf

ALPHA = 0.5
"""of Figure 14"""
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


def figure_13(report, drawn):
    rows, series = [], {group: [] for group in GROUPS}
    for alpha in ALPHAS:
        for one in report.kept(f"figure 13, alpha {alpha}", partial(with_alpha, drawn, alpha)):
            series[one["group"]].append((alpha, one.pop("us")))
            rows.append({"alpha": alpha, **one})
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


def with_alpha(drawn, alpha):
    """A row a group: its messages are the same for every alpha."""
    clauses, rows = drawn.clauses, []
    index = similarity_index(clauses, alpha, 0.7, word_weights(clauses), "R^t++")
    for group, batch in messages(100, 20).items():
        before, found = index.stats, len(index.match_batch(batch)[0]) / len(batch)
        scored = (index.stats["verified"] - before["verified"]) / len(batch)
        spent = microseconds(index.match_batch, batch)
        rows.append({"group": group, "matches": round(found), "entries scored": round(scored), "us": spent})
    return rows


def figure_14(report, drawn, rivals):
    """One index in memory after another; all must find as much."""
    found, series = {}, {group: {label: [] for label in (*POLICIES, *rivals)} for group in GROUPS}

    def take(label, theta, told):
        for group in GROUPS:
            number, spent = told[group]
            assert found.setdefault((theta, group), number) == number, (label, theta, group)
            series[group][label].append((theta, spent))
        progress(f"Figure 14: theta {theta}, {label}: " + ", ".join(f"{group} {told[group][1]:.0f} us" for group in GROUPS))

    for theta, policy in product(THETAS, POLICIES):
        take(
            policy,
            theta,
            report.kept(f"figure 14, {policy.replace('+', ' plus')}, theta {theta}", partial(with_theta, drawn, theta, policy)),
        )
    for label, make in rivals.items():
        told = report.kept(f"figure 14, {label}", partial(of_rival, drawn, make))
        for theta, one in zip(THETAS, told, strict=True):
            take(label, theta, one)
    for group, lines in series.items():
        name = f"figure_14_{group.replace(' ', '_')}"
        report.figure(name, lines, "theta", "us a message", caption=f"Figure 14: varying theta, alpha = 0.5: {group}", logy=True)
    judge_thetas(report, series, list(rivals))


def messages(short, long):
    """So many of each group, the same each time."""
    data = Twitter(fit=LOCAL)
    data.rng = np.random.default_rng(13)
    return {group: data.messages(group, short if group.startswith("short") else long) for group in GROUPS}


def with_theta(drawn, theta, policy):
    """For each group how much is found, and microseconds a message."""
    clauses = drawn.clauses
    index = similarity_index(clauses, ALPHA, theta, word_weights(clauses), policy)
    told = {}
    for group, batch in messages(20, 5).items():
        told[group] = len(index.match_batch(batch)[0]), microseconds(index.match_batch, batch)
    return told


def of_rival(drawn, make):
    """The same of a rival, for every theta."""
    clauses, told = drawn.clauses, []
    rival, weights = make(clauses), word_weights(clauses)
    for theta in THETAS:
        ask = partial(rival.similar_batch, alpha=ALPHA, theta=theta, idf=weights)
        told.append({group: (ask(batch), microseconds(ask, batch)) for group, batch in messages(20, 5).items()})
    return told


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
