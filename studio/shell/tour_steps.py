"""The texts of the guided tour: seven steps that follow one misclassified test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.overview import Overview, shares
from idc_core.coverage.cell_table import members, state_counts
from idc_core.coverage.closest_inputs import adjacent, closest, spread
from studio.jobs.results import View
from studio.state.selection import Selection
from studio.text import cell_name, cluster_name, count, percent, plural


class Words(NamedTuple):
    """What a step says."""

    see: str
    attempt: str
    meaning: str


@dataclass(frozen=True, eq=False)
class Story:
    """A setup as the tour tells of it; every number is taken from its results."""

    view: View

    @cached_property
    def cell(self) -> tuple[int, ...]:
        """The cell with the largest share of misclassified tests."""
        return _suspicious(self.view.table.cells, self.view.table.wrong, self.view.table.counts)

    @cached_property
    def inside(self) -> NDArray[np.int64]:
        """Positions of the tests in that cell."""
        return self.view.chosen[members(self.view.analysis.assignments[self.view.chosen], self.cell)]

    @property
    def position(self) -> int:
        """Position of the test that the tour follows: the first misclassified one in the cell."""
        correct = self.view.correct
        wrong = self.inside if correct is None else self.inside[~correct[self.inside]]
        return int(wrong[0] if len(wrong) else self.inside[0])

    @property
    def test(self) -> int:
        """Its number in its test set."""
        return int(self.view.test.ids[self.position])

    @cached_property
    def reached(self) -> list[int]:
        """Tests in the cell's state of each neuron."""
        counts = state_counts(self.view.analysis.assignments[self.view.chosen], self.view.sizes)
        return [int(tests[cluster]) for tests, cluster in zip(counts, self.cell, strict=True)]

    @property
    def rank(self) -> int:
        """Rank of the neuron whose state in the cell the fewest tests reach."""
        return int(np.argmin(self.reached))

    @property
    def neuron(self) -> int:
        """Index of that neuron in the layer."""
        return int(self.view.analysis.important[self.rank])

    @property
    def cluster_words(self) -> str:
        """The state in which the cell has that neuron."""
        return cluster_name(self.cell[self.rank], self.view.sizes[self.rank])

    @cached_property
    def around(self) -> list[tuple[int, ...]]:
        """All cells one step away."""
        return adjacent(self.view.sizes, self.cell)

    @cached_property
    def empty(self) -> list[tuple[int, ...]]:
        """Those of them that no test reaches, the closest to the test first."""
        covered = {tuple(cell) for cell in self.view.table.cells.tolist()}
        return sorted((cell for cell in self.around if cell not in covered), key=self.distance)

    def distance(self, cell: tuple[int, ...]) -> float:
        """Return how far the test lies from the centroids of a cell, in standard deviations."""
        analysis = self.view.analysis
        own = analysis.test_activations[[self.position]]
        return float(closest(own, analysis.centroids, cell, spread(analysis.train_activations), 1)[1][0])

    @property
    def goal(self) -> tuple[int, ...]:
        """The cell where a tester would go next: the closest uncovered one, else the cell itself."""
        return self.empty[0] if self.empty else self.cell

    @property
    def answer(self) -> str:
        """The class that the network gave the test."""
        return self.view.train.class_names[int(self.view.analysis.predictions[self.position])]

    @property
    def truth(self) -> str:
        """The test's class."""
        return self.view.test.class_names[int(self.view.test.targets[self.position])]


def _suspicious(cells: NDArray[np.uint8], wrong: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the cell with the largest share of misclassified tests, the first one where there are several."""
    return tuple(int(cluster) for cluster in cells[int(np.argmax(wrong / counts))])


def _only_by(tests: int, wrong: int) -> str:
    """Say by what a cell is reached."""
    if tests == wrong == 1:
        return "by one test only, and that one is misclassified"
    if tests == wrong:
        return f"by {count(tests)} tests, all of them misclassified"
    return f"by {plural(tests, 'test')}, {count(wrong)} of them misclassified"


def overview(result: Overview) -> Words:
    """Step 1, from what the Overview shows: the engine need not have run."""
    table = result.table
    cell = _suspicious(table.cells, table.wrong, table.counts)
    row = int(np.flatnonzero((table.cells == cell).all(axis=1))[0])
    tests, wrong = int(table.counts[row]), int(table.wrong[row])
    right = f"{percent(result.accuracy or 0)} of {plural(result.tests, 'test')} are classified correctly."
    return Words(
        f"{right} But {count(table.total - table.covered)} of {plural(table.total, 'cell')} in the grid are empty. A "
        f"**cell** is a combination of clusters (ranges of activation) of the "
        f"{plural(len(result.important), 'most important neuron')}.",
        "Find the cell with a cross (\u00d7) in the grid: only misclassified tests reach it.",
        f"Cell {cell_name(cell)} is reached {_only_by(tests, wrong)}. Accuracy does not show this. The tour follows "
        "this cell: its test, its neurons, its neighbours.",
    )


def _relevance(story: Story) -> Words:
    """Step 2."""
    analysis, chosen = story.view.analysis, story.view.chosen
    own = float(analysis.confidence[story.position])
    surer = int((analysis.confidence[chosen] > own).sum())
    return Words(
        f"Test {story.test}: a {story.truth} that the network classifies as a {story.answer}. Red pixels are "
        "evidence for "
        "this prediction, blue pixels against it.",
        f"Compare the heatmap for {story.answer} with the one for {story.truth}: which strokes count for which class? "
        "Then choose another **Method**.",
        f"The confidence of the prediction is {percent(own)}; {count(surer)} of {plural(len(chosen), 'test')} have a "
        "higher "
        "one. Pixels show where the network looked. The next step shows which neurons decided.",
    )


def _neurons(story: Story) -> Words:
    """Step 3."""
    analysis, view = story.view.analysis, story.view
    first, together = shares(analysis.importance, analysis.important)
    own = float(analysis.test_activations[story.position, story.rank])
    usual = float(analysis.test_activations[view.chosen, story.rank].mean())
    return Words(
        f"The neurons of layer {analysis.layer}, ranked by their contribution to the predictions. Neuron "
        f"{analysis.important[0]} is first with {percent(first)} of the positive relevance.",
        f"Neuron {story.neuron} is framed. Look at the tests that activate it most. Then click the bar of neuron "
        f"{analysis.important[0]} and compare.",
        f"{count(analysis.m)} of {plural(len(analysis.importance), 'neuron')} carry {percent(together)} of the "
        f"positive relevance: tests should vary these. Test {story.test} activates neuron {story.neuron} at "
        f"{own:.1f}; the mean over all tests is {usual:.1f}.",
    )


def _clusters(story: Story) -> Words:
    """Step 4."""
    view, rank = story.view, story.rank
    reached, size = story.reached[rank], view.sizes[rank]
    centroid = float(view.analysis.centroids[rank][story.cell[rank]])
    return Words(
        f"The activations of each important neuron, split into ranges (**clusters**). Neuron {story.neuron} has "
        f"{plural(size, 'cluster')}.",
        f"Below are tests in the {story.cluster_words} of neuron {story.neuron}, around {centroid:.1f}. "
        "Compare them with those of cluster 0 above.",
        f"Only {count(reached)} of {plural(len(view.chosen), 'test')} ({percent(reached / len(view.chosen))}) reach "
        f"this cluster, including test {story.test}.",
    )


def _coverage(story: Story) -> Words:
    """Step 5."""
    view, table = story.view, story.view.table
    wrong = len(story.inside) if view.correct is None else int((~view.correct[story.inside]).sum())
    return Words(
        f"All {plural(table.total, 'combination')} of the neurons' clusters. Filled cells contain tests. Cell "
        f"{cell_name(story.cell)} is framed; its tests are shown below the grid.",
        "Click other cells and look at their tests. Then colour by share misclassified.",
        f"{count(table.covered)} cells are covered (IDC {percent(table.covered / table.total)}). Cell "
        f"{cell_name(story.cell)} is one of them, but it is reached {_only_by(len(story.inside), wrong)}: covered "
        "does not "
        "mean classified correctly.",
    )


def _layers(story: Story) -> Words:
    """Step 6."""
    table, analysis = story.view.table, story.view.analysis
    return Words(
        f"IDC of every layer, for several numbers of neurons m. The framed square is the present setup: "
        f"layer {analysis.layer}, m = {analysis.m}, {percent(table.covered / table.total)}.",
        "Compare the layers by their chance of a new cell: do the intervals overlap?",
        "More neurons make more cells, of which "
        f"{plural(len(story.view.chosen), 'test')} can reach a smaller share. IDC compares test sets at the same layer "
        "and m, not layers; the chance of a new cell compares layers.",
    )


def _finding(story: Story) -> Words:
    """Step 7."""
    rank = next((i for i, pair in enumerate(zip(story.cell, story.goal, strict=True)) if pair[0] != pair[1]), 0)
    size, name = story.view.sizes[rank], story.view.neurons[rank]
    there, here = cluster_name(story.goal[rank], size), cluster_name(story.cell[rank], size)
    return Words(
        f"Cell {cell_name(story.goal)}: {name} is in its {there} instead of its {here}, otherwise as in cell "
        f"{cell_name(story.cell)}. No test reaches it. Of the empty neighbours it is the closest to test {story.test}.",
        "Look at the tests closest to it and download them (npz): they are good inputs to start from.",
        f"**The finding:** around test {story.test}, a {story.truth} classified as a {story.answer}, "
        f"{count(len(story.empty))} of {count(len(story.around))} neighbouring cells contain no test. Next, a tester "
        f"collects or generates a {story.truth} and a {story.answer} for each of them. Their predictions show whether "
        f"test {story.test} is an exception or part of a weakness.",
    )


@dataclass(frozen=True)
class Step:
    """One step of the tour: its page, what it is about, what puts it into words, and what is selected on arrival.

    `tab` is the page's tab that is opened; the first by default.
    """

    page: str
    title: str
    tell: Callable[..., Words]
    selects: Callable[[Story], Selection]
    tab: str = ""


def _cell(story: Story) -> Selection:
    return Selection(story.test, story.neuron, story.cell[story.rank], cell_name(story.cell))


STEPS: tuple[Step, ...] = (
    Step("overview", "what accuracy does not show", overview, lambda _: Selection()),
    Step("relevance", "where the network looked", _relevance, lambda story: Selection(story.test)),
    Step("neurons", "which neurons decide", _neurons, lambda story: Selection(story.test, story.neuron)),
    Step(
        "clusters",
        "what clusters they have",
        _clusters,
        lambda story: Selection(story.test, story.neuron, story.cell[story.rank]),
    ),
    Step("coverage", "a cell reached only by a misclassified test", _coverage, _cell),
    Step("layers", "is it only this layer?", _layers, _cell),
    Step(
        "coverage",
        "the finding, and the next step",
        _finding,
        lambda story: Selection(story.test, story.neuron, story.cell[story.rank], cell_name(story.goal)),
        tab="fill",
    ),
)
"""The steps in their order."""
