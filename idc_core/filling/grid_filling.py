"""Fill a grid: all cells that tests do not reach at once, by changes of tests first and then by a directed search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.result import Analysis
from idc_core.base.arrays import Floats, Ints
from idc_core.base.progress import Progress, part_of, report
from idc_core.coverage.cell_table import among, bordering, tabulate
from idc_core.coverage.cells import Codes, decode, encode
from idc_core.coverage.closest_inputs import closest
from idc_core.coverage.idc import IDC
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.evidence.validity import REJECTED
from idc_core.filling.judging import Judge
from idc_core.filling.proposals import changed, eight_bits, partners, ways_to_change
from idc_core.filling.result import Filling
from idc_core.filling.settings import FillSettings
from idc_core.generation.cell_search import CellSpace, reach_cells
from idc_core.models.weights import fingerprint
from idc_core.perturbation.inputs import Pictures, as_pictures
from idc_core.suites.suite import ProvenanceStep, nowhere
from idc_core.tracing.trace import collect

_ALL_LISTED = 1_000_000
"""Grids up to so many cells are listed whole; of larger ones the cells beside covered ones."""

_BLOCK_BYTES, _BYTES = 64 << 20, 256 << 20
"""Bytes of the pictures that are changed at a time, and of the seeds of a search, or the inputs of a result."""

_DOING = "ways to reach uncovered cells"


def fill_grid(
    model: nn.Module,
    source: IDC | Analysis,
    test: Dataset,
    judge: Judge,
    settings: FillSettings | None = None,
    *,
    voters: Sequence[str] = (),
    start: Filling | None = None,
    on_progress: Progress | None = None,
    on_found: Callable[[Filling], None] | None = None,
) -> Filling:
    """Make inputs for all cells that tests do not reach.

    Mild transforms, noise and blends of tests come first, then one directed search for all cells that no valid input
    reaches yet, from the tests closest to each. Every input has 8 bits and lies within its constraint.

    Parameters
    ----------
    model : Module
    source : IDC or Analysis
        Neurons and clusters; cells that a criterion has counted are covered, too.
    test : Dataset
        Pictures; what they reach is covered.
    judge : Judge
        As `fit_judge` returns it.
    settings : FillSettings, optional
        The budget.
    voters : sequence of str
        Names of the judge's voters.
    start : Filling, optional
        What a stopped call returned, with the same other arguments: it goes on, and ends as if it had not been stopped.
    on_progress : Progress, optional
        Returning False stops the work; what was found is returned.
    on_found : callable, optional
        Called with everything that was found so far whenever a way has been tried.

    Returns
    -------
    Filling

    Raises
    ------
    DataError
        If the inputs are no pictures.
    """
    filler = _Filler(model, source, test, judge, settings or FillSettings(), tuple(voters), start)
    try:
        while filler.done < len(filler.ways) and len(filler.open):
            report(on_progress, filler.done, filler.steps, _DOING)
            filler.advance(on_progress)
            if on_found is not None:
                on_found(filler.result())
        filler.done = len(filler.ways)
    except CancelledError:
        pass
    return filler.result()


@dataclass(eq=False)
class _Made:
    """Made inputs, field by field as in `Filling`."""

    inputs: Pictures
    cell: Ints
    way: Ints
    origin: Ints
    partner: Ints
    predictions: Ints
    change: Floats
    p: Floats
    votes: Ints

    def __add__(self, other: _Made) -> _Made:
        return _Made(*(np.concatenate([mine, vars(other)[name]]) for name, mine in vars(self).items()))

    def __getitem__(self, rows: NDArray[np.integer]) -> _Made:
        return _Made(*(values[rows] for values in vars(self).values()))

    def best(self, most: int) -> _Made:
        """Keep the inputs with the highest p-values of each cell; of equal ones the earlier."""
        order = np.lexsort((-self.p, self.cell))
        cells = self.cell[order]
        place = np.arange(len(cells)) - np.searchsorted(cells, cells)
        return self[order[place < most]]


class _Filler:
    """The state of filling a grid."""

    def __init__(
        self,
        model: nn.Module,
        source: IDC | Analysis,
        test: Dataset,
        judge: Judge,
        settings: FillSettings,
        voters: tuple[str, ...],
        start: Filling | None,
    ) -> None:
        if test.inputs.ndim != 4:
            raise DataError("Inputs can be made for uncovered cells of pictures only.")
        self.model, self.source, self.test, self.judge = model, source, test, judge
        self.settings, self.voters, self.began = settings, voters, time.perf_counter()
        self.space = CellSpace.of(source)
        self.activations = self._run(test.inputs)[1]
        reached = encode(self.space.assign(self.activations), self.space.sizes)
        counted = source.counts.codes if isinstance(source, IDC) else reached[:0]
        self.covered = np.unique(np.concatenate([reached, counted]))
        shape = tuple(map(int, test.inputs.shape[1:]))
        self.picture = 4 * prod(shape)
        most = max(1, min(settings.cells, _BYTES // (self.picture * settings.kept)))
        self.cells, self.left_out = _uncovered(self.covered, self.space.sizes, most)
        self.codes = encode(self.cells, self.space.sizes)
        search = ProvenanceStep(
            "reach-cell",
            f"changed until they lie in an uncovered cell (at most {settings.largest_change:g})",
            {"epsilon": settings.largest_change, "iterations": settings.iterations, "layer": self.space.layer},
            None,
            fingerprint(model),
        )
        self.ways = (*(ways_to_change(shape, settings.seed) if settings.changed else ()), search)
        drawn = np.random.default_rng(settings.seed).permutation(len(test))[: settings.changed]
        self.changing = np.sort(drawn)
        self.done, self.passes, self.before = 0, 0, 0.0
        self.made = self._nothing(shape)
        if start is not None:
            self._take_up(start)

    @property
    def steps(self) -> int:
        """How many steps the work has: one per way, and those of the search."""
        return len(self.ways) - 1 + self.settings.iterations * len(self._groups())

    @property
    def open(self) -> Ints:
        """Rows of the cells that no valid input reaches."""
        closed = self.made.cell[self.made.p > REJECTED]
        return np.setdiff1d(np.arange(len(self.cells)), closed)

    def advance(self, on_progress: Progress | None) -> None:
        """Try the next way."""
        step = self.ways[self.done]
        if step.recipe == "reach-cell":
            self._search(on_progress)
        else:
            size = max(1, _BLOCK_BYTES // self.picture)
            for start in range(0, len(self.changing), size):
                self._change(step, self.changing[start : start + size])
        self.done += 1

    def _change(self, step: ProvenanceStep, rows: Ints) -> None:
        """Change some tests in a way."""
        tests = as_pictures(self.test.inputs[rows])
        pictures = changed(step, tests, self.test.targets[rows], self.test.ids[rows])
        self.passes += len(pictures)
        classes, active = self._run(pictures)
        other = partners(step, self.test.targets[rows])
        second = np.where(other >= 0, self.test.ids[rows[other]], -1)
        self._add(pictures, encode(self.space.assign(active), self.space.sizes), classes, rows, second)

    def _groups(self) -> list[Ints]:
        """Return the open cells in groups whose seeds fit into memory: one group unless pictures are large."""
        size = max(1, _BYTES // (self.picture * self.settings.starts))
        return [self.open[start : start + size] for start in range(0, len(self.open), size)]

    def _search(self, on_progress: Progress | None) -> None:
        """Change the tests closest to every open cell until they lie in it; those that arrived count after a stop."""
        steps = self.steps
        for number, rows in enumerate(self._groups()):
            self._reach(rows, part_of(on_progress, self.done + number * self.settings.iterations, steps))

    def _reach(self, rows: Ints, on_progress: Progress | None) -> None:
        """Search for some cells at once."""
        cells = self.cells[rows]
        near = [
            closest(self.activations, self.space.centroids, cell, self.space.units, self.settings.starts)[0]
            for cell in cells
        ]
        origin = np.concatenate(near)
        found = reach_cells(
            self.model,
            self.source,
            np.repeat(cells, [len(some) for some in near], axis=0),
            self.test.inputs[origin],
            self.settings.largest_change,
            iterations=self.settings.iterations,
            enough=self.settings.kept,
            on_progress=on_progress,
        )
        self.passes += found.passes
        codes = encode(found.cells[found.seed_index], self.space.sizes)
        seeds = origin[found.seed_index]
        self._add(found.inputs, codes, found.predictions, seeds, nowhere(len(seeds)))
        if found.stopped:
            raise CancelledError("Stopped on request during the directed search.")

    def _add(self, pictures: Pictures, codes: Codes, classes: Ints, origin: Ints, partner: Ints) -> None:
        """Judge those pictures that lie in open cells, and keep the best of each cell."""
        order = np.argsort(self.codes, kind="stable")
        wanted = np.flatnonzero(among(codes, self.codes[order]))
        cell = order[np.searchsorted(self.codes[order], codes[wanted])]
        there = np.isin(cell, self.open)
        wanted, cell = wanted[there], cell[there]
        some = pictures[wanted]
        before = eight_bits(self.test.inputs[origin[wanted]])
        found = _Made(
            some,
            cell.astype(np.int64),
            np.full(len(wanted), self.done, np.int64),
            self.test.ids[origin[wanted]],
            partner[wanted],
            classes[wanted],
            np.abs(some - before).max((1, 2, 3), initial=0).astype(np.float64),
            self.judge.p(some),
            np.full(len(wanted), -1, np.int64),
        ).best(self.settings.kept)
        found.votes = self.judge.votes(found.inputs)
        self.made = (self.made + found).best(self.settings.kept)

    def _run(self, inputs: object) -> tuple[Ints, NDArray[np.floating]]:
        """Return the class of each picture and the activations of the important neurons."""
        traces = collect(self.model, inputs, [self.space.layer])
        active = traces.activations[self.space.layer][:, self.space.important]
        return traces.scores.argmax(1).astype(np.int64), active

    def _take_up(self, start: Filling) -> None:
        """Go on behind what was found before."""
        same = start.settings == self.settings and start.ways == self.ways and np.array_equal(start.cells, self.cells)
        if not same:
            raise SettingError("Filling goes on only with the settings, the network and the tests that it began with.")
        # What a stopped search had found is found again: other seeds of its cells may come closer.
        finished = np.flatnonzero(start.way < start.done)
        self.made = _Made(*(getattr(start, name) for name in vars(self.made)))[finished]
        self.done, self.passes, self.before = start.done, start.passes, start.seconds

    @staticmethod
    def _nothing(shape: tuple[int, ...]) -> _Made:
        whole, real = np.zeros(0, np.int64), np.zeros(0)
        return _Made(np.zeros((0, *shape), np.float32), whole, whole, whole, whole, whole, real, real, whole)

    def result(self) -> Filling:
        """Return all that was found so far."""
        order = np.argsort(self.test.ids, kind="stable")
        places = order[np.searchsorted(self.test.ids[order], self.made.origin)]
        return Filling(
            layer=self.space.layer,
            important=self.space.important,
            sizes=self.space.sizes,
            covered=self.covered,
            cells=self.cells,
            left_out=self.left_out,
            **vars(self.made),
            ways=self.ways,
            targets=self.test.targets[places],
            voters=self.voters,
            validity=self.judge.validity,
            other_detectors=self.judge.others,
            passes=self.passes,
            seconds=self.before + time.perf_counter() - self.began,
            done=self.done,
            settings=self.settings,
        )


def _uncovered(covered: Codes, sizes: tuple[int, ...], most: int) -> tuple[NDArray[np.uint8], int]:
    """Return uncovered cells, those that border on most covered ones first, at most so many, and how many are left."""
    total = prod(sizes)
    cells = bordering(tabulate(decode(covered, sizes), sizes))[0]
    if len(cells) < most and total <= _ALL_LISTED:
        known = np.sort(np.concatenate([covered, encode(cells, sizes)]))
        others = np.setdiff1d(np.arange(total, dtype=np.int64), known)
        cells = np.concatenate([cells, decode(others, sizes)])
    cells = cells[:most]
    return cells, total - len(covered) - len(cells)
