"""The suites that criteria are compared on: parts of the setup's tests, and other suites that the network can take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.coverage.agreement import WHOLE
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces
from studio.jobs import suite_catalog
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.jobs.suite_catalog import SuiteOption
from studio.text import lower

if TYPE_CHECKING:
    from idc_core.suites.suite import SuitePart

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PartOfTests:
    """A suite that is a part of the setup's tests, so that it needs no pass of its own.

    `positions` goes from a view to positions among the chosen tests, int64 (k,); none where the part is not defined.
    `regression_label` is empty where it is the same.
    """

    name: str
    label: str
    positions: Callable[[View], _Ints]
    regression_label: str = ""

    def named(self, view: View) -> str:
        """Return the label on a setup."""
        return self.label if view.is_classifier else self.regression_label or self.label


@dataclass(frozen=True)
class OtherSuite:
    """A suite of other inputs; `open` gives a fingerprint of the inputs and their traces of the setup's layer."""

    name: str
    label: str
    open: Callable[[Waiting, View], tuple[str, Traces]]


def _none() -> _Ints:
    return np.zeros(0, np.int64)


def _random_half(view: View) -> _Ints:
    count = len(view.chosen)
    return np.sort(np.random.default_rng(0).permutation(count)[: -(-count // 2)]).astype(np.int64)


def _predicted(right: bool) -> Callable[[View], _Ints]:
    def positions(view: View) -> _Ints:
        return _none() if view.correct is None else np.flatnonzero(view.correct[view.chosen] == right)

    return positions


def _uncertain(view: View) -> _Ints:
    if not view.is_classifier:
        return _none()
    order = np.argsort(view.analysis.confidence[view.chosen], kind="stable")
    return np.sort(order[: -(-len(order) // 4)])


def _half(first: bool) -> Callable[[View], _Ints]:
    """Cut the tests by target: the first half of the classes or of the values, or the second half."""

    def positions(view: View) -> _Ints:
        targets = view.test.targets[view.chosen]
        values = np.unique(targets)
        if len(values) < 2:
            return _none()
        return np.flatnonzero((targets < values[len(values) // 2]) == first)

    return positions


PARTS: dict[str, PartOfTests] = {
    part.name: part
    for part in (
        PartOfTests(WHOLE, "All tests", lambda view: np.arange(len(view.chosen))),
        PartOfTests("half", "Random half", _random_half),
        PartOfTests("first", "First classes", _half(True), "Smaller targets"),
        PartOfTests("last", "Last classes", _half(False), "Larger targets"),
        PartOfTests("uncertain", "Least confident 25 %", _uncertain),
        PartOfTests("right", "Correct", _predicted(True)),
        PartOfTests("wrong", "Misclassified", _predicted(False)),
    )
}
"""Parts by name; the first one is always shown."""


def parts(view: View) -> dict[str, _Ints]:
    """Return the parts that hold tests on this setup: positions among the chosen tests, by name."""
    positions_of = {name: part.positions(view) for name, part in PARTS.items()}
    return {name: positions for name, positions in positions_of.items() if len(positions)}


def others(view: View) -> dict[str, OtherSuite]:
    """Return the other suites that the network of a setup can take, by name: those of the Test sets page."""
    known = suite_catalog.suite_options(view)
    return {
        name: OtherSuite(name, f"{option.label} added" if option.joins else option.label, _opener(name, known))
        for name, option in known.items()
    }


def _opener(name: str, known: Mapping[str, SuiteOption]) -> Callable[[Waiting, View], tuple[str, Traces]]:
    def opened(waiting: Waiting, view: View) -> tuple[str, Traces]:
        suite = suite_catalog.open_suite(waiting, view, name, known)
        own = suite_catalog.base_suite(view).parts[0].fingerprint
        traces = [
            view.test_traces.only(view.chosen)
            if part.fingerprint == own
            else _run(waiting, view, part, f"making and running {lower(suite.label)}")
            for part, _ in suite.parts_with_targets
        ]
        return suite.fingerprint, Traces.joined(*traces)

    return opened


def _run(waiting: Waiting, view: View, part: SuitePart, doing: str) -> Traces:
    """Return the traces of a part of a suite in the setup's layer, passed through the network once."""
    layer = view.setup.layer

    def work(report: Progress) -> Traces:
        from idc_core.suites.responses import part_blocks

        # One after the other: making tests passes through the network too.
        blocks = part_blocks(part, report)
        return Traces.joined(*(collect(view.model, inputs, [layer], on_progress=report) for _, inputs in blocks))

    return waiting.get(JobKind("suites"), (view.card.fingerprint, part.fingerprint, layer), doing, work)
