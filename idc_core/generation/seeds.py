"""Where a search starts: ways to choose seeds among tests, by name.

A new way is a function in a file of its own, under the decorator `seed_choice`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.result import Analysis
from idc_core.base.arrays import Array, Ints
from idc_core.base.parameters import whole_number
from idc_core.base.ranges import SEED
from idc_core.base.registry import Registry
from idc_core.coverage.cell_table import CellTable
from idc_core.coverage.cells import decode, encode
from idc_core.coverage.closest_inputs import adjacent, closest, spread
from idc_core.coverage.prioritisation import UNCERTAINTIES, most_first
from idc_core.errors import SettingError


@dataclass(frozen=True, eq=False)
class Pool:
    """Tests that seeds are chosen from."""

    targets: Array
    """True classes, or true values of a regression, (n,)."""
    scores: NDArray[np.floating]
    """Of the network under test, before the softmax, (n, outputs)."""
    analysis: Analysis | None = None
    """Of a test set that holds these tests; for distances to a cell."""
    rows: Ints | None = None
    """Their positions in that test set, (n,); default the first n."""
    cell: Sequence[int] | None = None
    """The cell that seeds should lie close to."""

    def __len__(self) -> int:
        return len(self.targets)


_Choose = Callable[[Pool, int, np.random.Generator], Ints]
"""From a pool, a number and a source of randomness to positions in the pool, first choice first."""


@dataclass(frozen=True)
class _SeedChoice:
    """A way to choose seeds, with what menus say about it."""

    name: str
    label: str
    help: str
    choose: _Choose
    classes: bool = False
    """Whether it needs classes, so that a regression cannot use it."""
    cell: bool = False
    """Whether it needs an analysis and a cell."""


SEEDS: Registry[_SeedChoice] = Registry("way to choose seeds")
"""Ways to choose seeds by name; the paper leaves the choice to the user."""


def seed_choice(
    name: str, *, label: str, help: str, classes: bool = False, cell: bool = False
) -> Callable[[_Choose], _Choose]:
    """Register a function as a way to choose seeds."""

    def enter(choose: _Choose) -> _Choose:
        SEEDS[name] = _SeedChoice(name, label, help, choose, classes, cell)
        return choose

    return enter


@seed_choice("random", label="At random", help="Any tests, each as likely as another.")
def _at_random(pool: Pool, count: int, random: np.random.Generator) -> Ints:
    return random.permutation(len(pool))[:count]


@seed_choice("classes", label="As many of each class", help="Random tests, one of each class in turn.", classes=True)
def _each_class(pool: Pool, count: int, random: np.random.Generator) -> Ints:
    order = random.permutation(len(pool))
    targets = pool.targets[order]
    turn = np.zeros(len(pool), np.int64)
    for value in np.unique(targets):
        mine = targets == value
        turn[mine] = np.arange(np.count_nonzero(mine))
    return np.asarray(order[np.lexsort((targets, turn))][:count], np.int64)


@seed_choice(
    "uncertain",
    label="Least certain",
    help="The tests with the smallest difference between the two highest scores (margin).",
    classes=True,
)
def _uncertain(pool: Pool, count: int, random: np.random.Generator) -> Ints:
    return most_first(UNCERTAINTIES["margin"](pool.scores))[:count]


@seed_choice(
    "cell",
    label="Closest to an uncovered cell",
    help="The tests whose activations lie closest to a chosen cell.",
    cell=True,
)
def _near_cell(pool: Pool, count: int, random: np.random.Generator) -> Ints:
    analysis = pool.analysis
    if analysis is None or pool.cell is None:
        raise SettingError("Seeds close to a cell need an analysis and a cell; give both, or choose seeds otherwise.")
    active = analysis.test_activations[np.arange(len(pool)) if pool.rows is None else pool.rows]
    return closest(active, analysis.centroids, pool.cell, spread(analysis.train_activations), count)[0]


def choose_seeds(pool: Pool, how: str = "random", count: int = 50, seed: int = 0) -> Ints:
    """Choose `count` tests, or all where there are fewer, by a key of `SEEDS`: distinct positions, first choice first.

    Raises
    ------
    SettingError
        If there is no such way, it cannot choose from these tests, or `count` is not positive.
    """
    way = SEEDS[how]
    whole_number("The number of seeds", count, 1)
    if way.classes and pool.scores.shape[1] < 2:
        raise SettingError(f"Seeds by {how!r} need classes, but the network predicts one number.")
    random = np.random.default_rng(int(SEED.check(seed)))
    return np.asarray(way.choose(pool, count, random), np.int64)


def uncovered_beside(table: CellTable) -> tuple[int, ...] | None:
    """Return an uncovered cell one step away from the fullest covered cell that has one; None where there is none."""
    covered = {int(code) for code in encode(table.cells, table.sizes)}
    for row in np.argsort(-table.counts, kind="stable"):
        beside = adjacent(table.sizes, tuple(table.cells[row]))
        codes = encode(np.array(beside, np.uint8).reshape(-1, len(table.sizes)), table.sizes)
        for cell, code in zip(beside, codes, strict=True):
            if int(code) not in covered:
                return cell
    return None


def uncovered_neighbours(table: CellTable, count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Draw uncovered cells that lie one step away from a covered one, all where there are fewer."""
    covered = {int(code) for code in encode(table.cells, table.sizes)}
    beside = {
        int(code)
        for cell in table.cells
        if (near := adjacent(table.sizes, tuple(cell)))
        for code in encode(np.array(near, np.uint8), table.sizes)
    }
    left = sorted(beside - covered)
    drawn = np.random.default_rng(seed).permutation(len(left))[:count]
    return [tuple(int(i) for i in decode(np.array([left[place]], object), table.sizes)[0]) for place in drawn]
