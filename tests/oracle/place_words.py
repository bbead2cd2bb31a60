"""Who hears of a message, by asking everyone: the judge of every structure for boxes and words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.model.columns.arrays import ClauseColumns, EventColumns
from tidings.model.filter.clause import Box, touches


class PlaceWordsOracle:
    """`every` asks for all of a clause's words, else one of them is enough. A name may have several clauses."""

    def __init__(self, every: bool = True) -> None:
        self.every = every
        self.clauses: list[tuple[int, Box, frozenset[int]]] = []

    def __len__(self) -> int:
        return len(self.clauses)

    def insert(self, names: NDArray[np.int32], clauses: ClauseColumns) -> None:
        for row, name in enumerate(names.tolist()):
            self.clauses.append((name, box_of(clauses.box, row), words_of(clauses.word_start, clauses.word, row)))

    def delete(self, names: NDArray[np.int32]) -> None:
        gone = set(names.tolist())
        self.clauses = [clause for clause in self.clauses if clause[0] not in gone]

    def match_batch(self, events: EventColumns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        matches = set()
        for event in range(len(events)):
            box, words = box_of(events.box, event), words_of(events.word_start, events.word, event)
            for name, wanted_box, wanted in self.clauses:
                if touches(wanted_box, box) and (wanted <= words if self.every else bool(wanted & words)):
                    matches.add((event, name))
        pairs = np.array(sorted(matches), np.int32).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def check(self) -> None:
        """There is nothing to break."""

    @property
    def nbytes(self) -> int:
        return 0


def box_of(box: NDArray[np.float64], row: int) -> Box:
    xmin, ymin, xmax, ymax = box[row].tolist()
    return xmin, ymin, xmax, ymax


def words_of(start: NDArray[np.int64], word: NDArray[np.int32], row: int) -> frozenset[int]:
    return frozenset(word[start[row] : start[row + 1]].tolist())
