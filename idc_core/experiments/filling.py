"""Filling a grid beside two other ways with as many passes: random transforms, and coverage-guided fuzzing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.result import Analysis
from idc_core.base.arrays import Ints
from idc_core.base.progress import Progress, report
from idc_core.coverage.cell_table import among
from idc_core.coverage.cells import Codes, encode
from idc_core.datasets import Dataset
from idc_core.evidence.validity import REJECTED
from idc_core.filling import FillSettings, Judge, fill_grid
from idc_core.filling.proposals import changed, eight_bits, ways_to_change
from idc_core.generation.cell_search import CellSpace
from idc_core.perturbation.inputs import Pictures, as_pictures
from idc_core.suites.suite import ProvenanceStep

_BATCH = 512
_DEVIATION = 0.1
"""Of the noise of a mutation, in parts of a value's range."""

_Next = Callable[[], Pictures]
_Seen = Callable[[Pictures, NDArray[np.bool_]], None]


@dataclass(frozen=True)
class Filled:
    """What one way of making inputs has reached.

    Attributes
    ----------
    way : str
    seed : int
    cells : int
        Cells reached that no test reaches.
    valid_cells : int
        Those of them that a valid input reaches.
    inputs, valid : int
        Inputs judged, at most `FillSettings.kept` per cell, and those that the detector accepts.
    passes : int
    seconds : float
        Of the making; judging is part of it for "filling" alone, which chooses by it.
    """

    way: str
    seed: int
    cells: int
    valid_cells: int
    inputs: int
    valid: int
    passes: int
    seconds: float


def compare_ways(
    model: nn.Module,
    analysis: Analysis,
    test: Dataset,
    judge: Judge,
    settings: FillSettings,
    *,
    on_progress: Progress | None = None,
) -> tuple[Filled, Filled, Filled]:
    """Fill a grid, then spend as many passes on random transforms and on fuzzing."""
    filling = fill_grid(model, analysis, test, judge, settings, on_progress=on_progress)
    counts = int(filling.reached.sum()), int(filling.reached_validly.sum()), len(filling), int(filling.valid.sum())
    first = Filled("filling", settings.seed, *counts, filling.passes, filling.seconds)
    loops = [
        _Loop(way, model, analysis, test, judge, settings, filling.passes).run(on_progress)
        for way in ("random transforms", "fuzzing")
    ]
    return first, loops[0], loops[1]


class _Loop:
    """Inputs made batch by batch until the passes are spent; what lies in new cells is collected and judged."""

    def __init__(
        self,
        way: str,
        model: nn.Module,
        analysis: Analysis,
        test: Dataset,
        judge: Judge,
        settings: FillSettings,
        passes: int,
    ) -> None:
        self.way, self.model, self.judge, self.settings, self.passes = way, model, judge, settings, passes
        self.space, self.test = CellSpace.of(analysis), test
        self.tests = eight_bits(as_pictures(test.inputs[:]))
        self.covered: Codes = np.unique(encode(analysis.assignments, self.space.sizes))
        self.random = np.random.default_rng(settings.seed)
        # TensorFuzz's corpus: the tests, and behind them what reached new cells; each with the test it comes from.
        self.corpus, self.roots = list(self.tests), list(range(len(self.tests)))
        self.inputs: dict[int, list[Pictures]] = {}

    def run(self, on_progress: Progress | None) -> Filled:
        """Spend the passes."""
        began, spent = time.perf_counter(), 0
        step = self._fuzzed if self.way == "fuzzing" else self._transformed
        while spent < self.passes:
            report(on_progress, spent, self.passes, f"passes spent on {self.way}")
            count = min(_BATCH, self.passes - spent)
            pictures, roots = step(count)
            spent += count
            codes = self.space.codes(self.model, pictures)
            for row in np.flatnonzero(~among(codes, self.covered)):
                self._found(int(codes[row]), pictures[row], int(roots[row]))
        seconds = time.perf_counter() - began
        accepted = [self.judge.p(np.stack(some)) > REJECTED for some in self.inputs.values()]
        return Filled(
            self.way,
            self.settings.seed,
            len(accepted),
            sum(bool(some.any()) for some in accepted),
            sum(map(len, accepted)),
            sum(int(some.sum()) for some in accepted),
            spent,
            seconds,
        )

    def _found(self, code: int, picture: Pictures, root: int) -> None:
        """Keep the first inputs of a cell; the first one joins the corpus."""
        if code not in self.inputs:
            self.corpus.append(picture)
            self.roots.append(root)
        mine = self.inputs.setdefault(code, [])
        if len(mine) < self.settings.kept:
            mine.append(picture)

    def _fuzzed(self, count: int) -> tuple[Pictures, Ints]:
        """Mutate kept inputs, drawn uniformly, by white noise within the largest change of the tests they come from."""
        drawn = self.random.integers(len(self.corpus), size=count)
        pictures = np.stack([self.corpus[place] for place in drawn])
        roots = np.array([self.roots[place] for place in drawn], np.int64)
        noise = _DEVIATION * self.random.standard_normal(pictures.shape)
        most = self.settings.largest_change
        change = np.clip(pictures + noise - self.tests[roots], -most, most)
        return eight_bits(self.tests[roots] + np.trunc(255 * change) / 255), roots

    def _transformed(self, count: int) -> tuple[Pictures, Ints]:
        """Change random tests by a random one of the mild transforms, its settings drawn from their mild range."""
        rows = self.random.integers(len(self.tests), size=count)
        step = self._random_step()
        targets = self.test.targets[rows]
        return changed(step, self.tests[rows], targets, np.arange(count, dtype=np.int64)), rows

    def _random_step(self) -> ProvenanceStep:
        """Draw a way to change tests; of each setting a value between the smallest and the largest that is mild."""
        shape = tuple(map(int, self.tests.shape[1:]))
        ways = ways_to_change(shape, self.settings.seed)
        recipe = self.random.choice(list(dict.fromkeys(step.recipe for step in ways)))
        alike = [step for step in ways if step.recipe == recipe]
        drawn: dict[str, object] = dict(alike[self.random.integers(len(alike))].settings)
        for name, value in drawn.items():
            if isinstance(value, float):
                ends = [float(str(step.settings[name])) for step in alike]
                drawn[name] = float(self.random.uniform(min(ends), max(ends)))
        return replace(alike[0], settings=drawn, seed=int(self.random.integers(2**31)))
