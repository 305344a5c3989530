"""What cells have in common: the smallest condition on clusters that many of them share and few others do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_MOST_NEURONS = 4
_MOST_WORK = 200_000_000
"""Conditions times cells that are looked at: of many neurons only conditions on fewer."""

_FALSE = 0.05
"""Up to which share the cells of a condition may be others."""


@dataclass(frozen=True)
class Common:
    """A condition on clusters, and how many cells it holds in.

    Attributes
    ----------
    condition : tuple of (int, int)
        Rank of a neuron among the important ones, and its cluster; all of them together.
    cells : int
        Cells in question in which it holds, of those that no earlier condition holds in.
    others : int
        Other cells in which it holds.
    """

    condition: tuple[tuple[int, int], ...]
    cells: int
    others: int

    def words(self, neurons: Sequence[int], sizes: Sequence[int]) -> str:
        """Write the condition with the neurons' own numbers: "neurons 3, 5 and 6 high together"."""
        parts = []
        for level in dict.fromkeys(_level(cluster, sizes[rank]) for rank, cluster in self.condition):
            mine = [str(neurons[rank]) for rank, cluster in self.condition if _level(cluster, sizes[rank]) == level]
            named = mine[0] if len(mine) == 1 else f"{', '.join(mine[:-1])} and {mine[-1]}"
            parts.append(f"neuron{'s' * (len(mine) > 1)} {named} {level}")
        return ", ".join(parts) + (" together" if len(self.condition) > 1 else "")


def _level(cluster: int, size: int) -> str:
    if cluster == 0:
        return "low"
    if cluster == size - 1:
        return "high"
    return "in the middle" if size == 3 else f"in cluster {cluster}"


def in_common(cells: NDArray[np.uint8], others: NDArray[np.uint8], most: int = 3) -> list[Common]:
    """Return conditions that cells (c, m) share and other cells (o, m) hardly do, at most `most`.

    The first holds in most of the cells, among those of which at most 5 % hold in other cells; of equal ones that with
    fewer others, then with fewer neurons. The next is that of the cells that are left. A condition of one cell alone
    says nothing and is left out.
    """
    found: list[Common] = []
    left = np.unique(cells, axis=0)
    others = np.unique(others, axis=0) if len(others) else others.reshape(0, cells.shape[1])
    while len(left) > 1 and len(found) < most:
        best = _best(left, others)
        if best is None:
            break
        found.append(best)
        left = left[~_holds(left, best.condition)]
    return found


def _holds(cells: NDArray[np.uint8], condition: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    holds = np.ones(len(cells), bool)
    for rank, cluster in condition:
        holds &= cells[:, rank] == cluster
    return holds


def _best(cells: NDArray[np.uint8], others: NDArray[np.uint8]) -> Common | None:
    """Return the condition that most of the cells share and hardly any others; None where there is none."""
    m = cells.shape[1]
    single = [(rank, int(cluster)) for rank in range(m) for cluster in np.unique(cells[:, rank])]
    mine = {one: cells[:, one[0]] == one[1] for one in single}
    theirs = {one: others[:, one[0]] == one[1] for one in single}
    best: tuple[tuple[int, int, int], Common] | None = None
    for neurons in range(1, min(_MOST_NEURONS, m) + 1):
        conditions = [some for some in combinations(single, neurons) if len({rank for rank, _ in some}) == neurons]
        if neurons > 1 and len(conditions) * (len(cells) + len(others)) > _MOST_WORK:
            break
        for condition in conditions:
            held = int(np.logical_and.reduce([mine[one] for one in condition]).sum())
            if held < 2 or (best is not None and held < best[1].cells):
                continue
            wrong = int(np.logical_and.reduce([theirs[one] for one in condition]).sum())
            rank = (held, -wrong, -neurons)
            if wrong <= _FALSE * (held + wrong) and (best is None or rank > best[0]):
                best = rank, Common(condition, held, wrong)
    return None if best is None else best[1]
