"""Where the three R^t trees keep a subscription's words: the same boxes, and other tokens at their nodes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from docs.figures.canvas import BLUE, GROUND, INK, ORANGE, SOFT, bare, sheet, svg
from tidings.index.rttree.policy import POLICIES, token_range
from tidings.index.rttree.tree import RtTree
from tidings.model.columns.arrays import ClauseColumns

ENTRIES, ONE = 3_000, 1_217
WORDS = [
    "rain",
    "road",
    "fire",
    "boat",
    "bike",
    "snow",
    "river",
    "storm",
    "bridge",
    "ferry",
    "harbour",
    "music",
    "market",
    "football",
    "opera",
    "chess",
    "orchid",
    "falcon",
]


def clauses() -> ClauseColumns:
    """Subscriptions of a box and three words each, of which the first ones of WORDS are frequent."""
    rng = np.random.default_rng(8)
    corner = rng.uniform(0, 10, (ENTRIES, 2))
    chances = 1 / np.arange(1, len(WORDS) + 1)
    word = np.stack([np.sort(rng.choice(len(WORDS), 3, replace=False, p=chances / chances.sum())) for _ in range(ENTRIES)])
    none = np.zeros(0)
    return ClauseColumns(
        owner=np.arange(ENTRIES, dtype=np.int32),
        pred_start=np.zeros(ENTRIES + 1, np.int64),
        pred_dim=none.astype(np.int16),
        pred_kind=none.astype(np.uint8),
        pred_lo=none,
        pred_hi=none,
        pool=none.astype(np.int32),
        box=np.hstack([corner, corner + rng.uniform(0.05, 0.3, (ENTRIES, 2))]),
        word_start=np.arange(0, 3 * ENTRIES + 1, 3),
        word=word.ravel().astype(np.int32),
        residue=np.zeros(ENTRIES, np.bool_),
    )


def draw() -> str:
    trees = {name: RtTree(name) for name in POLICIES}
    for tree in trees.values():
        tree.insert(np.arange(ENTRIES, dtype=np.int32), clauses())
    figure, axes = sheet(8.2, 4.0, 4, (1.55, 1, 1, 1))
    plane(axes[0], trees["R^t++"])
    for axis, (name, tree) in zip(axes[1:], trees.items(), strict=True):
        column(bare(axis), name, tree)
    return svg(figure)


def entry_and_path(tree: RtTree) -> tuple[int, list[int]]:
    """The entry that is shown, and the nodes above it from the root's child to its leaf."""
    entry = int(np.flatnonzero(tree.entries.name == ONE)[0])
    path = [int(tree.body.leaf[entry])]
    while (above := int(tree.body.parent[path[0]])) != tree.body.root:
        path.insert(0, above)
    return entry, path


def plane(axes: Axes, tree: RtTree) -> None:
    entry, path = entry_and_path(tree)
    body = tree.body
    for child in body.child[body.root, : body.degree[body.root]]:
        frame(axes, body.box[child], BLUE, 1.6)
    for leaf in body.child[path[0], : body.degree[path[0]]]:
        frame(axes, body.box[leaf], SOFT, 0.7)
    frame(axes, body.box[path[-1]], ORANGE, 2)
    for box in body.entry_box[body.leaf == path[-1]]:
        frame(axes, box, ORANGE, 0.6)
    x, y = body.entry_box[entry, :2]
    axes.plot([x], [y], "*", ms=9, color=INK)
    axes.set(xlim=(-0.2, 10.5), ylim=(-0.2, 10.5), aspect="equal", xticks=[], yticks=[])
    axes.set_title("nodes of level 1, leaves\nbelow one, entries of one leaf", fontsize=9)


def frame(axes: Axes, box: np.ndarray, colour: str, width: float) -> None:
    axes.add_patch(Rectangle((box[0], box[1]), box[2] - box[0], box[3] - box[1], fill=False, edgecolor=colour, lw=width))


def column(axes: Axes, name: str, tree: RtTree) -> None:
    entry, path = entry_and_path(tree)
    begin = tree.entries.word_start[entry]
    own = (tree.entries.token[begin : begin + tree.entries.word_count[entry]] - 1).tolist()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_title(name.replace("R^t", "R$^t$"), fontsize=11)
    for top, title, node, colour in ((0.97, "level 1", path[0], BLUE), (0.67, "leaf", path[-1], ORANGE)):
        held = tokens_at(tree, node)
        mine = [word for word in own if posted(tree, node, entry, word)]
        own_here = ", ".join(WORDS[word] for word in mine)
        lines = [f"{title}: {len(held)} tokens", f"held {sum(held.values()):,} times", f"★ {own_here}"]
        box(axes, top, lines, colour)
    box(axes, 0.37, ["★ asks for, in order", *(WORDS[word] for word in own)], INK)


def box(axes: Axes, top: float, lines: list[str], colour: str) -> None:
    height = 0.066 * len(lines) + 0.03
    axes.add_patch(FancyBboxPatch((0.03, top - height), 0.94, height, "round,pad=0.01", facecolor=GROUND, edgecolor=colour, lw=1.2))
    for place, line in enumerate(lines):
        axes.text(0.07, top - 0.05 - 0.066 * place, line, fontsize=7.5, va="center", color=INK)


def tokens_at(tree: RtTree, node: int) -> dict[int, int]:
    """How many entries a node holds of each token."""
    key, held = tree.tokens.key, tree.tokens.held
    there = np.flatnonzero((key >= 0) & (key >> 32 == node) & (held > 0))
    return {int(key[slot] & 0xFFFFFFFF) - 1: int(held[slot]) for slot in there}


def posted(tree: RtTree, node: int, entry: int, word: int) -> bool:
    """Whether the entry's word is among the tokens that it has at the node, by its place in the entry's order."""
    begin, count = tree.entries.word_start[entry], tree.entries.word_count[entry]
    place = (tree.entries.token[begin : begin + count] - 1).tolist().index(word)
    level, levels = (1 if node != tree.body.leaf[entry] else tree.body.levels), tree.body.levels
    first, last = token_range(tree.policy, level, levels, int(count))
    return first <= place < last
