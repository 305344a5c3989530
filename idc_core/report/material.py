"""What a report is made from: a network and its tests, passed through it and analysed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.filtering import Conditions, of_classes
from idc_core.analysis.mistakes import mistakes_of
from idc_core.analysis.overview import Overview, overview_of
from idc_core.analysis.result import Analysis
from idc_core.base.parameters import shown
from idc_core.base.progress import Progress
from idc_core.coverage.cell_table import CellTable, tabulate
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.importance.important_neurons import check_m
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import ModelCard, Network
from idc_core.runs import PlannedAnalysis
from idc_core.runs.analysis_run import Sources
from idc_core.runs.planned import Fingerprints
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces
from idc_core.work import Here
from idc_core.work.executor import OpenExecutor

_ALL = Conditions()


@dataclass(frozen=True, eq=False)
class Material:
    """An analysed network and its tests.

    `plan` says what the `analysis` is of, all tests; the traces are what its layer showed on training inputs and tests.
    `conditions` say which of the tests are looked at; `open_model` gives the network where it is needed.
    """

    plan: PlannedAnalysis
    open_model: Callable[[], Network]
    train_traces: Traces
    test_traces: Traces
    analysis: Analysis
    conditions: Conditions = _ALL

    @property
    def card(self) -> ModelCard:
        """The network's card."""
        return self.plan.card

    @property
    def train(self) -> Dataset:
        """What the clusters are learnt from."""
        return self.plan.train

    @property
    def test(self) -> Dataset:
        """The tests."""
        return self.plan.test

    @property
    def fingerprints(self) -> Fingerprints:
        """Of the network, its training inputs and the tests."""
        return self.card.fingerprint, self.train.fingerprint, self.test.fingerprint

    @cached_property
    def chosen(self) -> NDArray[np.int64]:
        """Positions of the tests looked at."""
        suspects = self.conditions.without
        mistakes = mistakes_of(self.test_traces.scores, self.train, self.test) if suspects else None
        return self.conditions.positions(self.test, self.analysis, self.train.class_names, mistakes)

    @property
    def learnt(self) -> NDArray[np.float32]:
        """The layer's activations on the training inputs of the same true classes, (n, neurons)."""
        rows = of_classes(self.train.targets, self.train.class_names, self.conditions.classes)
        return self.train_traces.activations[self.analysis.layer][rows]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Clusters of each important neuron."""
        return tuple(neuron.k for neuron in self.analysis.clusters)

    @property
    def correct(self) -> NDArray[np.bool_] | None:
        """Whether each test is classified correctly; None where that cannot be said."""
        comparable = bool(self.test.class_names) and self.test.class_names == self.train.class_names
        return self.analysis.correct if comparable else None

    @cached_property
    def table(self) -> CellTable:
        """The covered cells of the tests looked at, without classes."""
        correct = None if self.correct is None else self.correct[self.chosen]
        return tabulate(self.analysis.assignments[self.chosen], self.sizes, correct=correct)

    @cached_property
    def overview(self) -> Overview:
        """The result at a glance."""
        activations = self.train_traces.activations[self.analysis.layer]
        data = (self.train, self.test)
        return overview_of(self.analysis, self.card.fingerprint, data, self.conditions, self.chosen, activations)


def gather(
    plan: PlannedAnalysis,
    sources: Sources,
    conditions: Conditions = _ALL,
    open_executor: OpenExecutor = Here,
    on_progress: Progress | None = None,
) -> Material:
    """Gather what a report is made from: results that are kept, and others that are kept from then on.

    Parameters
    ----------
    plan : PlannedAnalysis
    sources : pair of Source
        The plan's training inputs and tests, as this process has them.
    conditions : Conditions, optional
        What a test must meet to be looked at; by default all are.
    open_executor : callable, optional
        Opens what runs the passes.
    on_progress : Progress, optional

    Returns
    -------
    Material

    Raises
    ------
    IdcError
        As `analyze`; SettingError also where the tests have no such class, or none meets the conditions.
    """
    check_classes(conditions.classes, plan.test.class_names)
    check_classes(conditions.predicted, plan.train.class_names)
    here, analysis = Here(), plan.planned(sources).found()

    def open_model() -> Network:
        return here.open(sources[1]).model

    if analysis is None:
        # One input tells how many neurons the layer has, so a mistake need not wait for all of them.
        first = collect(open_model(), plan.train.inputs[:1], [plan.layer], RelevanceSettings())
        check_m(plan.m, first.activations[plan.layer].shape[1])
    traces = plan.traces(sources, open_executor, on_progress)
    if analysis is None:
        analysis = plan.planned(sources, open_executor, traces if plan.traced_alike else None).kept(on_progress)
    neurons = {part.activations[plan.layer].shape[1] for part in traces} | {len(analysis.importance)}
    if len(neurons) > 1:
        raise DataError(
            f"Kept results of {plan.layer!r} have {' and '.join(map(str, sorted(neurons)))} neurons: some were "
            "imported or changed. Delete them on the page Runs, or with the folder of kept results."
        )
    material = Material(plan, open_model, *traces, analysis, conditions)
    if not len(material.chosen):
        raise SettingError(f"There are no tests {conditions.words}: choose others, or use more tests.")
    return material


def check_classes(classes: Sequence[str], class_names: Sequence[str]) -> None:
    """Refuse classes that tests do not have."""
    unknown = [name for name in classes if name not in class_names]
    if unknown:
        some = ", ".join(class_names[:12]) + (" ..." if len(class_names) > 12 else "")
        raise SettingError(f"There is no class {shown(unknown[0])}; the classes are {some or 'none'}.")
