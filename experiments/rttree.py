"""The experiments of the location-aware paper (section 7): figures 7-14 and Table 1, and its claims, judged.

Times are process CPU time of one core for each message, the least of REPEATS runs over a batch.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from experiments.baselines.inverted_rtree import InvertedRtree
from experiments.baselines.keyword_first import KeywordFirst
from experiments.baselines.spatial_first import SpatialFirst
from experiments.report import Report, cpu_seconds
from experiments.rttree_data import GROUPS, PAPER_MATCHES, VOCABULARY, Real, Twitter, clause_columns
from tidings.index.representative_tokens import ORDERS
from tidings.index.rt_policy import POLICIES
from tidings.index.rt_similarity import SimilarityIndex
from tidings.index.rt_tree import RtTree
from tidings.model.arrays import EventColumns
from tidings.rank.similarity import idf

REPEATS = 3
LENGTHS = {"short": (5, 10, 15, 20), "long": (100, 400, 700, 1000)}
SIZES = {"Twitter-like": 100_000, "comparison": 1_000_000, "GeoNames and tweets": 100_000}
FULL_SIZES = {"Twitter-like": 10_000_000, "comparison": 10_000_000, "GeoNames and tweets": 10_000_000}
ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)
THETAS = (0.5, 0.6, 0.7, 0.8, 0.9)
PAPER_GB = {"R^t": 1.63, "R^t+": 0.79, "R^t++": 0.89}
PAPER_ORDER_GB = {"random": 0.76, "df": 0.72, "idf": 0.79, "locality": 0.83}


def main(full: bool = False) -> None:
    sizes = FULL_SIZES if full else SIZES
    count = sizes["Twitter-like"]
    real = sizes["GeoNames and tweets"]
    size = (
        f"{count:,} Twitter-like subscriptions ({sizes['comparison']:,} in figure 9), {real:,} real ones; the paper has 10 million."
    )
    kind = "The paper's size" if full else "The default size (`make papers`; `make papers-full` runs the paper's)"
    report = Report("rttree", title="Location-aware publish/subscribe: the R^t trees", size=f"{kind}: {size}")
    data = Twitter()
    clauses = data.subscriptions(count)
    groups = {group: by_length(data, group) for group in GROUPS}
    trees = {policy: tree(policy, "locality", clauses) for policy in POLICIES}
    for step in (
        lambda: table_1(report, trees, clauses),
        lambda: matches_fit(report, data, trees["R^t++"], count),
        lambda: figure_7(report, clauses, groups),
        lambda: figure_8(report, trees, groups),
        lambda: box_first(report, clauses, groups),
        lambda: figures_9_and_10(report, sizes),
        lambda: figures_11_and_12(report, data, clauses),
        lambda: figure_13(report, data, clauses),
        lambda: figure_14(report, data, clauses),
    ):
        step()
    report.write()


def progress(text: str) -> None:
    print(f"  {text}", flush=True)


def by_length(data, group):
    """A batch of messages for each number of words on the figures' x axis."""
    kind = group.split()[0]
    return {length: data.messages(group, 100 if kind == "short" else 20, length) for length in LENGTHS[kind]}


def tree(policy, order, clauses, **options):
    index = RtTree(policy, order, **options)
    index.insert(np.arange(len(clauses), dtype=np.int32), clauses)
    return index


def microseconds(match, events):
    """CPU microseconds a message, the least of REPEATS runs after one that warms up."""
    match(events)
    return cpu_seconds(lambda: match(events), REPEATS) / len(events) * 1e6


def curves(report, name, caption, indexes, groups):
    """One figure a group: time by the number of words, a line for each index. Returns mean times by (index, group)."""
    mean = {}
    for group, batches in groups.items():
        series = {
            label: [(length, microseconds(i.match_batch, batch)) for length, batch in batches.items()]
            for label, i in indexes.items()
        }
        mean |= {(label, group): float(np.mean([y for _, y in line])) for label, line in series.items()}
        report.figure(
            f"{name}_{group.replace(' ', '_')}",
            series,
            "words of the message",
            "us a message",
            caption=f"{caption}: {group}",
            logy=True,
        )
        progress(f"{caption}: {group}: " + ", ".join(f"{label} {mean[label, group]:.0f} us" for label in indexes))
    return mean


def ordering(report, text, mean, groups, *labels, reason="The cause was not investigated."):
    """The claim that the first label is fastest, then the next, in every group; `reason` is told where it fails."""
    for faster, slower in pairwise(labels):
        holds = [group for group in groups if mean[faster, group] < mean[slower, group]]
        ratios = ", ".join(f"{group} {mean[slower, group] / mean[faster, group]:.2f}x" for group in groups)
        report.claim(
            f"{text}: {faster} is faster than {slower}",
            len(holds) == len(list(groups)),
            ratios,
            reason if len(holds) < len(list(groups)) else "",
        )


def table_1(report, trees, clauses):
    count, rows = len(clauses), []
    raw = clauses.box.nbytes + clauses.word.nbytes + clauses.word_start.nbytes
    rows.append({"what": "subscriptions", "ours": f"{count:,}", "paper": "10 million"})
    rows.append({"what": "words a subscription", "ours": round(len(clauses.word) / count, 2), "paper": "3 (1-5)"})
    rows.append({"what": "subscriptions, bytes each", "ours": round(raw / count), "paper": 54})
    for policy, index in trees.items():
        rows.append(
            {
                "what": f"{policy} tree, bytes a subscription",
                "ours": round(size_of(index) / count),
                "paper": round(PAPER_GB[policy] * 100),
            }
        )
    report.table("table_1", rows, "Table 1: data and index sizes")
    sizes = {policy: size_of(index) for policy, index in trees.items()}
    report.claim(
        "Table 1: the R^t+ tree is the smallest, R^t++ next, R^t the largest",
        sizes["R^t+"] < sizes["R^t++"] < sizes["R^t"],
        ", ".join(f"{policy} {bytes_ / count:.0f} B" for policy, bytes_ in sizes.items()),
    )
    progress("Table 1")


def size_of(index):
    """Without the dynamic frequencies, which the paper does not count either."""
    return index.nbytes - index.frequencies.nbytes


def matches_fit(report, data, index, count):
    rows = []
    for group in GROUPS:
        events = data.messages(group, 300 if group.startswith("short") else 60)
        rows.append(
            {
                "group": group,
                "ours, scaled to 10 million": round(len(index.match_batch(events)[0]) / len(events) * 1e7 / count),
                "paper": PAPER_MATCHES[group],
            }
        )
    report.table("matches", rows, "Average matches of a message, the figures the Twitter-like data are fitted to")
    progress("average matches")


def counters(report, name, caption, trees, groups):
    """What the trees count a message, at the greatest number of words: (label, group) -> counters."""
    rows, counted = [], {}
    for label, index in trees.items():
        for group, batches in groups.items():
            before, batch = index.stats, list(batches.values())[-1]
            index.match_batch(batch)
            counted[label, group] = {key: (value - before[key]) / len(batch) for key, value in index.stats.items()}
            rows.append(
                {
                    "tree": label,
                    "group": group,
                    **{key: round(counted[label, group][key], 1) for key in ("visited", "postings", "verified")},
                }
            )
    report.table(name, rows, f"{caption}: nodes asked for tokens, postings read and entries verified a message")
    return counted


def figure_7(report, clauses, groups):
    trees = {order: tree("R^t+", order, clauses) for order in ORDERS}
    mean = curves(report, "figure_7", "Figure 7: orders of representative tokens on R^t+", trees, groups)
    counted = counters(report, "figure_7_counters", "Figure 7", trees, groups)
    place = "In these data words are drawn independently of places, so no word is locally rarer than elsewhere."
    ordering(report, "Figure 7", mean, groups, "locality", "idf", reason=place)
    ordering(report, "Figure 7", mean, groups, "idf", "df", "random")
    verified = {order: sum(counted[order, group]["verified"] for group in groups) for order in trees}
    report.claim(
        "Section 4.2: idf prunes better than df and random: fewer entries are left to verify",
        verified["idf"] < min(verified["df"], verified["random"]),
        "entries verified a message, summed over the groups: "
        + ", ".join(f"{order} {value:.0f}" for order, value in verified.items()),
    )
    count = len(clauses)
    rows = [
        {"order": order, "ours, B a subscription": round(size_of(index) / count), "paper, B": round(PAPER_ORDER_GB[order] * 100)}
        for order, index in trees.items()
    ]
    report.table("figure_7_sizes", rows, "Section 7.1: R^t+ sizes by order")
    sizes = [size_of(trees[order]) for order in ("df", "random", "idf", "locality")]
    report.claim(
        "Section 7.1: R^t+ sizes grow in the order df, random, idf, locality-aware",
        sizes == sorted(sizes),
        ", ".join(f"{order} {size_of(index) / count:.0f} B" for order, index in trees.items()),
    )


def figure_8(report, trees, groups):
    mean = curves(report, "figure_8", "Figure 8: R^t, R^t+ and R^t++", trees, groups)
    ordering(report, "Figure 8", mean, groups, "R^t++", "R^t+", "R^t")
    counted = counters(report, "figure_8_counters", "Figure 8", trees, groups)
    report.claim(
        "Lemma 2: R^t+ leaves no more candidates than R^t",
        all(counted["R^t+", group]["verified"] <= counted["R^t", group]["verified"] for group in groups),
        "entries verified a message: "
        + "; ".join(
            f"{group} R^t {counted['R^t', group]['verified']:.0f}, R^t+ {counted['R^t+', group]['verified']:.0f}"
            for group in groups
        ),
    )
    short = max(mean["R^t++", group] for group in ("short point", "short range"))
    at_full_size(
        report, len(trees["R^t++"]), "Figure 8: R^t++ takes at most 2 ms for short messages", short <= 2000, f"{short:.0f} us"
    )


def at_full_size(report, count, text, holds, measured):
    """A claim about absolute figures at 10 million subscriptions: judged at that size, only told at a smaller one."""
    if count == FULL_SIZES["Twitter-like"]:
        report.claim(text, holds, measured)
    else:
        report.text(f"{text} (at 10 million): not judged at {count:,} subscriptions, where it is {measured}.")


def box_first(report, clauses, groups):
    """What testing an entry's box first is worth; our other deviations in R^t++ are in both columns."""
    rows, indexes = [], {first: tree("R^t++", "locality", clauses, box_first=first) for first in (True, False)}
    for group, batches in groups.items():
        batch = list(batches.values())[-1]
        ours, last = (microseconds(indexes[first].match_batch, batch) for first in (True, False))
        rows.append(
            {
                "group": group,
                "box tested first, us": round(ours, 1),
                "box tested last, us": round(last, 1),
                "ratio": last / ours,
            }
        )
    report.table(
        "box_first",
        rows,
        "R^t++ with an entry's box tested when it is met first, or when its words are all there (as in the paper)",
    )
    progress("R^t++ with the box first or last")


def figures_9_and_10(report, sizes):
    for name, caption, data, count in (
        ("figure_9", "Figure 9: comparison on the Twitter-like data", Twitter(), sizes["comparison"]),
        ("figure_10", "Figure 10: comparison on places and tweets", Real(), sizes["GeoNames and tweets"]),
    ):
        clauses = data.subscriptions(count)
        rivals = {
            "R^t++": tree("R^t++", "idf", clauses),
            "keyword-first": KeywordFirst(clauses),
            "spatial-first": SpatialFirst(clauses),
            "IR-tree": InvertedRtree(clauses),
        }
        groups = {group: by_length(data, group) for group in GROUPS}
        agree(rivals, groups)
        mean = curves(report, name, caption, rivals, groups)
        counters(report, f"{name}_counters", caption.split(":")[0], {"R^t++": rivals["R^t++"]}, groups)
        judge_rivals(report, caption.split(":")[0], mean, list(rivals)[1:])


def judge_rivals(report, title, mean, rivals):
    points, ranges = ([group for group in GROUPS if group.endswith(kind)] for kind in ("point", "range"))
    ordering(report, f"{title}, point messages", mean, points, "spatial-first", "keyword-first")
    ordering(report, f"{title}, range messages", mean, ranges, "keyword-first", "spatial-first")
    ordering(report, title, mean, GROUPS, "spatial-first", "IR-tree")
    for rival in rivals:
        ordering(report, title, mean, GROUPS, "R^t++", rival)


def agree(rivals, groups):
    """The comparators must give the same answers before they are timed."""
    for batches in groups.values():
        batch = next(iter(batches.values()))
        answers = {
            label: sorted(zip(*(side.tolist() for side in index.match_batch(batch)), strict=True))
            for label, index in rivals.items()
        }
        assert all(answer == answers["R^t++"] for answer in answers.values()), {
            label: len(answer) for label, answer in answers.items()
        }


def figures_11_and_12(report, data, clauses):
    steps = [len(clauses) * share // 5 for share in range(1, 6)]
    batches = {group: data.messages(group, 400 if group.startswith("short") else 50) for group in GROUPS}
    times, throughput = {group: [] for group in GROUPS}, {group: [] for group in GROUPS}
    for count in steps:
        index = tree("R^t++", "idf", head(clauses, count))
        for group, batch in batches.items():
            times[group].append((count, microseconds(index.match_batch, batch)))
            throughput[group].append(
                (count, operations_a_second(index, clauses, data.messages(group, 800 if group.startswith("short") else 80)))
            )
        progress(f"Figures 11 and 12: {count:,} subscriptions")
    report.figure("figure_11", times, "subscriptions", "us a message", caption="Figure 11: scalability of R^t++")
    report.figure(
        "figure_12",
        throughput,
        "subscriptions",
        "operations a second",
        caption="Figure 12: throughput of R^t++, 80 % messages, 10 % insertions, 10 % deletions",
        logy=True,
    )
    growth = {group: line[-1][1] / line[0][1] for group, line in times.items()}
    report.claim(
        "Figure 11: time grows less than the number of subscriptions",
        all(g < 5 for g in growth.values()),
        "five times the subscriptions take " + ", ".join(f"{group} {g:.1f}x" for group, g in growth.items()),
    )
    for group, least in (("short point", 600), ("long range", 60)):
        rate = throughput[group][-1][1]
        text = f"Figure 12: at least {least} operations a second with {group} messages"
        at_full_size(report, steps[-1], text, rate >= least, f"{rate:.0f} operations a second")


def head(clauses, count):
    """The first `count` clauses."""
    return clause_columns(clauses.box[:count], clauses.word_start[: count + 1], clauses.word[: clauses.word_start[count]])


def only(clauses, row):
    """One clause."""
    first, last = clauses.word_start[row : row + 2]
    return clause_columns(clauses.box[row : row + 1], np.array([0, last - first]), clauses.word[first:last])


def operations_a_second(index, clauses, events):
    """Eight messages, an insertion and a deletion again and again, a call each: 80 / 10 / 10 %."""
    fresh, spent, operations = len(clauses), 0.0, 0
    for first in range(0, len(events), 8):
        batch = EventColumns(
            events.value[first : first + 8], events.box[first : first + 8], events.word_start[first : first + 9], events.word
        )
        name = np.array([fresh], np.int32)
        row = fresh % len(clauses)
        one = only(clauses, row)
        spent += cpu_seconds(lambda: (index.insert(name, one), index.match_batch(batch), index.delete(name)), 1)  # noqa: B023
        operations += len(batch) + 2
        fresh += 1
    return operations / spent


def similarity_index(clauses, alpha, theta, weights, policy):
    n = len(clauses)
    return SimilarityIndex.build(
        clauses.box, clauses.word_start, clauses.word, np.full(n, alpha), np.full(n, theta), weights, policy
    )


def figure_13(report, data, clauses):
    weights = idf(np.bincount(clauses.word, minlength=VOCABULARY), len(clauses))
    series = {group: [] for group in GROUPS}
    batches = {group: data.messages(group, 100 if group.startswith("short") else 20) for group in GROUPS}
    for alpha in ALPHAS:
        index = similarity_index(clauses, alpha, 0.7, weights, "R^t++")
        for group, batch in batches.items():
            series[group].append((alpha, microseconds(index.match_batch, batch)))
        progress(f"Figure 13: alpha {alpha}")
    report.figure("figure_13", series, "alpha", "us a message", caption="Figure 13: varying alpha, theta = 0.7, R^t++", logy=True)
    shape = {group: 0 < int(np.argmin([y for _, y in line])) < len(line) - 1 for group, line in series.items()}
    report.claim(
        "Figure 13: with growing alpha R^t++ first becomes faster and then slower",
        all(shape.values()),
        "; ".join(f"{group} " + ", ".join(f"{y:.0f}" for _, y in line) + " us" for group, line in series.items()),
    )


def figure_14(report, data, clauses):
    alpha, weights = 0.5, idf(np.bincount(clauses.word, minlength=VOCABULARY), len(clauses))
    batches = {group: data.messages(group, 20 if group.startswith("short") else 5) for group in GROUPS}
    rivals = {"keyword-first": KeywordFirst(clauses), "spatial-first": SpatialFirst(clauses), "IR-tree": InvertedRtree(clauses)}
    series = {group: {label: [] for label in (*POLICIES, *rivals)} for group in GROUPS}
    for theta in THETAS:
        indexes = {policy: similarity_index(clauses, alpha, theta, weights, policy) for policy in POLICIES}
        for group, batch in batches.items():
            found = {label: len(index.match_batch(batch)[0]) for label, index in indexes.items()}
            found |= {label: rival.similar_batch(batch, alpha, theta, weights) for label, rival in rivals.items()}
            assert len(set(found.values())) == 1, found
            for label, index in indexes.items():
                series[group][label].append((theta, microseconds(index.match_batch, batch)))
            for label, rival in rivals.items():
                spent = cpu_seconds(lambda: rival.similar_batch(batch, alpha, theta, weights), 2)  # noqa: B023
                series[group][label].append((theta, spent / len(batch) * 1e6))
        progress(f"Figure 14: theta {theta}")
    for group, lines in series.items():
        report.figure(
            f"figure_14_{group.replace(' ', '_')}",
            lines,
            "theta",
            "us a message",
            caption=f"Figure 14: varying theta, alpha = 0.5: {group}",
            logy=True,
        )
    falls = {group: lines["R^t++"][-1][1] < lines["R^t++"][0][1] for group, lines in series.items()}
    ends = "; ".join(f"{group} {lines['R^t++'][0][1]:.0f} us to {lines['R^t++'][-1][1]:.0f} us" for group, lines in series.items())
    report.claim("Figure 14: filtering becomes easier as theta grows", all(falls.values()), f"R^t++ from theta 0.5 to 0.9: {ends}")
    mean = {
        (label, group): float(np.mean([y for _, y in line])) for group, lines in series.items() for label, line in lines.items()
    }
    for rival in ("R^t+", "R^t", *rivals):
        ordering(report, "Figure 14", mean, GROUPS, "R^t++", rival)


if __name__ == "__main__":
    main()
