"""A bench whose passes run on an engine, block by block: on one machine or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.result import Analysis
from idc_core.confusion import Evidence, counted_evidence
from idc_core.coverage.idc import IDC
from idc_core.coverage.registry import Criterion
from idc_core.engines import Engine, Source
from idc_core.engines.analysis import analyze_on
from idc_core.engines.attacks import attack_on
from idc_core.engines.class_errors import count_on
from idc_core.engines.criteria import fit_on, update_on
from idc_core.engines.traces import collect_on
from idc_core.gate.bench import Bench
from idc_core.gate.opening import open_names
from idc_core.gate.settings import Gate, read_gate
from idc_core.perturbation import AttackResult
from idc_core.progress import Progress
from idc_core.runs import Planned, PlannedAnalysis
from idc_core.setup_files import open_setup


class EngineBench(Bench):
    """The network of a check and its data; each worker of an engine opens them as well.

    Parameters
    ----------
    gate : Gate
    number : int
        Which of its checks.
    find_engine : callable
        Gives the engine.
    on_progress : Progress, optional
    """

    def __init__(
        self, gate: Gate, number: int, find_engine: Callable[[], Engine], on_progress: Progress | None = None
    ) -> None:
        super().__init__(gate.checks[number], gate.folder, on_progress)
        self.find_engine, self._opens = find_engine, _Opens(str(gate.file.absolute()), number)

    @cached_property
    def learnt(self) -> Source:
        """What workers open as training inputs."""
        card, limit = self.model.card, self.settings.limit_train
        prints = card.fingerprint, self.train.fingerprint
        return Source(self.model_name, card.dataset, "train", limit, self._opens, prints)

    @cached_property
    def tests(self) -> Source:
        """What workers open as tests."""
        prints = self.model.card.fingerprint, self.test.fingerprint
        return Source(self.model_name, self.tests_name, "test", self.settings.limit_test, self._opens, prints)

    def planned(self, plan: PlannedAnalysis) -> Planned[Analysis]:
        """Return how the analysis is made."""

        def make(on_progress: Progress | None) -> Analysis:
            criterion = IDC(self.model, self.layer, self.m, self.settings.idc)
            return analyze_on(
                self.find_engine(), criterion, self.learnt, self.tests, self.test, on_progress=on_progress
            )

        return replace(super().planned(plan), make=make)

    def predict(self) -> NDArray[np.float32]:
        """Return the network's scores of the tests."""
        return collect_on(self.find_engine(), self.tests, (), on_progress=self.on_progress).scores

    def measure(self, criteria: Sequence[Criterion]) -> None:
        """Let criteria learn from the training inputs and see the tests."""
        fit_on(self.find_engine(), criteria, self.learnt, on_progress=self.on_progress)
        update_on(self.find_engine(), criteria, self.tests, on_progress=self.on_progress)

    def evidence(self, layers: tuple[str, ...], threshold: float) -> Evidence:
        """Return what errors of classes are found in: predictions, and which neurons of some layers are active."""
        found = count_on(self.find_engine(), self.tests, layers, threshold, on_progress=self.on_progress)
        return counted_evidence(found.counts, found.predicted.joined(), self.test, self.class_names)

    def attack(self, name: str, count: int, seed: int, parameters: Mapping[str, Any]) -> AttackResult:
        """Attack the first tests, so many of them."""
        few = self.tests.of("test", min(count, len(self.test)))
        return attack_on(self.find_engine(), few, name, seed=seed, on_progress=self.on_progress, **parameters)


@dataclass(frozen=True)
class _Opens:
    """Opens in a worker the setup files of a gate, and what one of its checks names by a path."""

    file: str
    number: int

    def __call__(self) -> None:
        """Open them."""
        gate = read_gate(Path(self.file))
        for setup in gate.setups:
            open_setup(setup)
        open_names(gate.checks[self.number], gate.folder)
