"""The suites that criteria are compared on: parts of the bench's tests, and others that the network can take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.progress import Progress
from studio.engine import suite_catalog
from studio.engine.jobs import Waiting
from studio.engine.results import View
from studio.widgets.text import lower

if TYPE_CHECKING:
    from idc_core.suites.suite import Part as SuitePart
    from idc_core.tracing.trace import Traces

Ints = NDArray[np.int64]

WHOLE = "all"
"""Name of the suite that holds all tests of the bench."""


@dataclass(frozen=True)
class Part:
    """A suite that is a part of the bench's tests, so that it needs no pass of its own.

    Attributes
    ----------
    name, label, help : str
        Short name, the name for a person, and one line on what is in it.
    positions : callable
        From a view to positions among the chosen tests, int64 (k,); none where the part has no meaning there.
    of_numbers : str
        The label where right answers are numbers; empty where it is the same.
    """

    name: str
    label: str
    help: str
    positions: Callable[[View], Ints]
    of_numbers: str = ""

    def named(self, view: View) -> str:
        """Return the label on a bench."""
        return self.label if view.is_classifier else self.of_numbers or self.label


@dataclass(frozen=True)
class Other:
    """A suite of other inputs.

    Attributes
    ----------
    name, label, help : str
        As in `Part`.
    open : callable
        From what shows progress and a view to a fingerprint of the inputs and what the bench's layer shows on them.
    """

    name: str
    label: str
    help: str
    open: Callable[[Waiting, View], tuple[str, Traces]]


def _none() -> Ints:
    return np.zeros(0, np.int64)


def _random_half(view: View) -> Ints:
    count = len(view.chosen)
    return np.sort(np.random.default_rng(0).permutation(count)[: -(-count // 2)]).astype(np.int64)


def _answered(right: bool) -> Callable[[View], Ints]:
    def positions(view: View) -> Ints:
        return _none() if view.correct is None else np.flatnonzero(view.correct[view.chosen] == right)

    return positions


def _uncertain(view: View) -> Ints:
    if not view.is_classifier:
        return _none()
    order = np.argsort(view.analysis.confidence[view.chosen], kind="stable")
    return np.sort(order[: -(-len(order) // 4)])


def _half(first: bool) -> Callable[[View], Ints]:
    """Cut the tests by what they are: the first classes and the others, or the smaller right answers and the larger."""

    def positions(view: View) -> Ints:
        targets = view.test.targets[view.chosen]
        values = np.unique(targets)
        if len(values) < 2:
            return _none()
        return np.flatnonzero((targets < values[len(values) // 2]) == first)

    return positions


PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        Part(WHOLE, "All tests", "The tests of the bench.", lambda view: np.arange(len(view.chosen))),
        Part("half", "Random half", "Half of the tests, drawn at random (seed 0).", _random_half),
        Part(
            "first",
            "First classes",
            "Tests of the first half of the classes, or of answers.",
            _half(True),
            "Smaller answers",
        ),
        Part(
            "last",
            "Last classes",
            "Tests of the second half of the classes, or of answers.",
            _half(False),
            "Larger answers",
        ),
        Part("uncertain", "Least sure quarter", "The quarter of least confidence.", _uncertain),
        Part("right", "Classified correctly", "The tests that the network gets right.", _answered(True)),
        Part("wrong", "Misclassified", "The tests that the network gets wrong.", _answered(False)),
    )
}
"""Parts by name; the first one is always shown."""


def parts(view: View) -> dict[str, Ints]:
    """Return the parts that have tests on this bench: positions among the chosen tests, by name."""
    found = {name: part.positions(view) for name, part in PARTS.items()}
    return {name: positions for name, positions in found.items() if len(positions)}


def others(view: View) -> dict[str, Other]:
    """Return the other suites that the network of a bench can take, by name: those of the laboratory."""
    return {
        name: Other(name, f"{one.label} added" if one.joins else one.label, one.help, _opener(name))
        for name, one in suite_catalog.offers(view).items()
    }


def _opener(name: str) -> Callable[[Waiting, View], tuple[str, Traces]]:
    def opened(waiting: Waiting, view: View) -> tuple[str, Traces]:
        from idc_core.coverage.agreement import joined, rows
        from idc_core.suites import parts_of

        suite, own = suite_catalog.open_suite(waiting, view, name), suite_catalog.base_suite(view).parts[0].fingerprint
        traces = [
            rows(view.test_traces, view.chosen)
            if part.fingerprint == own
            else _run(waiting, view, part, f"making and running {lower(suite.label)}")
            for part, _ in parts_of(suite)
        ]
        return suite.fingerprint, joined(*traces)

    return opened


def _run(waiting: Waiting, view: View, part: SuitePart, doing: str) -> Traces:
    """Return what the bench's layer shows on a part of a suite, passed through the network once."""
    layer = view.bench.layer

    def work(report: Progress) -> Traces:
        from idc_core.coverage.agreement import joined
        from idc_core.suites.responses import blocks_of
        from idc_core.tracing.trace import collect

        # One after the other: making tests passes through the network too.
        blocks = blocks_of(part, report)
        return joined(*(collect(view.model, inputs, [layer], on_progress=report) for _, inputs in blocks))

    found: Traces = waiting.get("suites", (view.model.card.fingerprint, part.fingerprint, layer), doing, work)
    return found
