"""What the guided tour tells, in seven steps: one test that was classified wrongly, and where it leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.overview import Overview, rarest_state, shares
from idc_core.coverage.cell_table import members, state_counts
from idc_core.coverage.closest_inputs import adjacent, closest, spread
from studio.engine.results import View
from studio.shell.selection import Selection
from studio.widgets.text import cell_name, cluster_name, count, percent, plural


class Words(NamedTuple):
    """What a step says."""

    see: str
    attempt: str
    meaning: str


@dataclass(frozen=True, eq=False)
class Story:
    """A bench as the tour tells of it; every number is taken from its results.

    Attributes
    ----------
    view : View
        The bench.
    """

    view: View

    @cached_property
    def cell(self) -> tuple[int, ...]:
        """The cell with the largest share of misclassified tests."""
        return suspicious(self.view.table.cells, self.view.table.wrong, self.view.table.counts)

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


def suspicious(cells: NDArray[np.uint8], wrong: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the cell with the largest share of misclassified tests, the first one where there are several."""
    return tuple(int(cluster) for cluster in cells[int(np.argmax(wrong / counts))])


def only_by(tests: int, wrong: int) -> str:
    """Say by what a cell is reached."""
    if tests == wrong == 1:
        return "by one test only, and that one is misclassified"
    if tests == wrong:
        return f"by {count(tests)} tests, all of them misclassified"
    return f"by {plural(tests, 'test')}, {count(wrong)} of them misclassified"


def overview(result: Overview) -> Words:
    """Step 1, from what the Overview shows: the engine need not have run."""
    table = result.table
    cell = suspicious(table.cells, table.wrong, table.counts)
    row = int(np.flatnonzero((table.cells == cell).all(axis=1))[0])
    tests, wrong = int(table.counts[row]), int(table.wrong[row])
    right = f"{percent(result.accuracy or 0)} of {plural(result.tests, 'test')} are right."
    return Words(
        f"{right} Yet {count(table.total - table.covered)} of {plural(table.total, 'cell')} in the grid are empty. A "
        f"**cell** is a combination of states of the {plural(len(result.important), 'neuron')} that decide most.",
        "Find the cell with a cross (\u00d7) in the grid: only misclassified tests reach it.",
        f"Cell {cell_name(cell)} is reached {only_by(tests, wrong)}. The accuracy does not tell you that. The tour "
        "follows this cell: first its test, then its neurons, then its neighbours.",
    )


def relevance(story: Story) -> Words:
    """Step 2."""
    analysis, chosen = story.view.analysis, story.view.chosen
    own = float(analysis.confidence[story.position])
    surer = int((analysis.confidence[chosen] > own).sum())
    return Words(
        f"Test {story.test}, a {story.truth} that the network takes for a {story.answer}. Red pixels spoke for that "
        "answer, blue ones against it.",
        f"Compare the heatmap for {story.answer} with the one for {story.truth} beside it: which strokes do they "
        "claim? Then choose another **Method**.",
        f"The network gives its answer with {percent(own)} confidence; it is surer of {count(surer)} of "
        f"{plural(len(chosen), 'test')}. Pixels show where it looked, not which neurons decided: they come next.",
    )


def neurons(story: Story) -> Words:
    """Step 3."""
    analysis, view = story.view.analysis, story.view
    first, together = shares(analysis.importance, analysis.important)
    own = float(analysis.test_activations[story.position, story.rank])
    usual = float(analysis.test_activations[view.chosen, story.rank].mean())
    return Words(
        f"The neurons of layer {analysis.layer}, ranked by how much they contribute to the answers. Neuron "
        f"{analysis.important[0]} leads with {percent(first)} of the positive relevance.",
        f"Neuron {story.neuron} is framed. Look at the tests that activate it most, then click the bar of neuron "
        f"{analysis.important[0]} and compare.",
        f"{count(analysis.m)} of {plural(len(analysis.importance), 'neuron')} carry {percent(together)} of the "
        f"positive relevance: tests should vary these. Test {story.test} drives neuron {story.neuron} to "
        f"{own:.1f}, where the mean over all tests is {usual:.1f}.",
    )


def clusters(story: Story) -> Words:
    """Step 4."""
    view, rank = story.view, story.rank
    reached, size = story.reached[rank], view.sizes[rank]
    centroid = float(view.analysis.centroids[rank][story.cell[rank]])
    rarest = rarest_state(view.analysis.assignments[view.chosen], view.sizes)[:2] == (rank, story.cell[rank])
    rare = "no state of an important neuron is reached less often" if rarest else "few states are reached less often"
    return Words(
        f"The activations of each important neuron, split into groups (**clusters**). Neuron {story.neuron} has "
        f"{plural(size, 'state')}.",
        f"Below are tests in the {story.cluster_words} of neuron {story.neuron}, around {centroid:.1f}. Those of its "
        "cluster 0 "
        "stand above them: see how the pictures differ.",
        f"Only {count(reached)} of {plural(len(view.chosen), 'test')} ({percent(reached / len(view.chosen))}) reach "
        f"that state, and test {story.test} is one of them: {rare}.",
    )


def coverage(story: Story) -> Words:
    """Step 5."""
    view, table = story.view, story.view.table
    wrong = len(story.inside) if view.correct is None else int((~view.correct[story.inside]).sum())
    return Words(
        f"All {plural(table.total, 'combination')} of the neurons' states. A filled cell holds tests. Cell "
        f"{cell_name(story.cell)} is framed, and what is in it is shown beside the grid.",
        "Click other cells and look at their tests. Then colour by the share misclassified.",
        f"{count(table.covered)} cells are covered (IDC {percent(table.covered / table.total)}). Cell "
        f"{cell_name(story.cell)} counts as one of them, but it is reached {only_by(len(story.inside), wrong)}: "
        "covered does not mean right.",
    )


def layers(story: Story) -> Words:
    """Step 6."""
    table, analysis = story.view.table, story.view.analysis
    return Words(
        f"The same measure for every layer and several numbers of neurons m. The framed square is what you have seen: "
        f"layer {analysis.layer}, m = {analysis.m}, {percent(table.covered / table.total)}.",
        f"Compare the layers in the column m = {analysis.m}: in which one do these tests reach the least?",
        "The more neurons are combined, the more cells there are, and the lower the share that "
        f"{plural(len(story.view.chosen), 'test')} can reach. So compare test sets at the same layer and m, and look "
        "at single cells, as the last step does.",
    )


def finding(story: Story) -> Words:
    """Step 7."""
    rank = next((i for i, pair in enumerate(zip(story.cell, story.goal, strict=True)) if pair[0] != pair[1]), 0)
    size, name = story.view.sizes[rank], story.view.neurons[rank]
    there, here = cluster_name(story.goal[rank], size), cluster_name(story.cell[rank], size)
    return Words(
        f"Cell {cell_name(story.goal)}: {name} in its {there} instead of its {here}, all else as in cell "
        f"{cell_name(story.cell)}. No test reaches it; of the empty neighbours it is the closest to test {story.test}.",
        "Look at the tests that come closest to it, and take them away (npz): they are good inputs to start from.",
        f"**The finding:** where the network fails on test {story.test}, a {story.truth} taken for a {story.answer}, "
        f"{count(len(story.empty))} of the {count(len(story.around))} neighbouring cells hold no test at all. A tester "
        f"would now collect or make a {story.truth} and a {story.answer} for each of them, and see whether test "
        f"{story.test} is an exception or the edge of a weakness.",
    )


@dataclass(frozen=True)
class Step:
    """One step of the tour.

    Attributes
    ----------
    page : str
        Name of its page.
    title : str
        What it is about.
    tell : callable
        Puts it into words.
    selects : callable
        What is selected on arrival.
    """

    page: str
    title: str
    tell: Callable[..., Words]
    selects: Callable[[Story], Selection]


def _cell(story: Story) -> Selection:
    return Selection(story.test, story.neuron, story.cell[story.rank], cell_name(story.cell))


STEPS: tuple[Step, ...] = (
    Step("overview", "what the accuracy does not tell", overview, lambda _: Selection()),
    Step("relevance", "where the network looked", relevance, lambda story: Selection(story.test)),
    Step("neurons", "which neurons decide", neurons, lambda story: Selection(story.test, story.neuron)),
    Step(
        "clusters",
        "what states they have",
        clusters,
        lambda story: Selection(story.test, story.neuron, story.cell[story.rank]),
    ),
    Step("coverage", "a cell that only an error reaches", coverage, _cell),
    Step("layers", "is it only this layer?", layers, _cell),
    Step(
        "coverage",
        "the finding, and what a tester would do next",
        finding,
        lambda story: Selection(story.test, story.neuron, story.cell[story.rank], cell_name(story.goal)),
    ),
)
"""The steps in their order."""
