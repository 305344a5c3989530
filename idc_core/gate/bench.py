"""What the limits of one check are measured on: network and data, and the passes that several limits share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from idc_core.analysis.analysis import usual_m
from idc_core.analysis.predictions import Predictions, predictions_of
from idc_core.analysis.result import Analysis
from idc_core.base.progress import Progress
from idc_core.confusion import ClassErrors, countable_layers, find_errors
from idc_core.datasets import DATASETS, Dataset, load_dataset
from idc_core.errors import SettingError
from idc_core.gate.on_coverage import Coverage
from idc_core.gate.settings import Gate, read_gate
from idc_core.lrp.session import check_layers
from idc_core.models import load_model
from idc_core.models.network import Network
from idc_core.opening.setup_files import open_setup
from idc_core.perturbation import AttackResult
from idc_core.runs import PlannedAnalysis, class_evidence
from idc_core.runs.planned import Fingerprints
from idc_core.work import Executor, Source
from idc_core.work.attacks import attack_inputs
from idc_core.work.criteria import fit_criteria, update_criteria
from idc_core.work.traces import trace_inputs


class Bench:
    """The network of a check and its data, each loaded when it is first asked for.

    Parameters
    ----------
    gate : Gate
    number : int
        Which of its checks.
    find_executor : callable
        Gives what runs its passes, open as long as the gate runs.
    on_progress : Progress, optional
    """

    def __init__(
        self, gate: Gate, number: int, find_executor: Callable[[], Executor], on_progress: Progress | None = None
    ) -> None:
        self.check = gate.checks[number]
        self.settings, self.find_executor, self.on_progress = self.check.settings, find_executor, on_progress
        self._opens = _Opens(str(gate.file.absolute()), number)
        self.model_name, self.tests_name = self.check.enter(gate.folder)
        self.model: Network = load_model(self.model_name)
        self.layer = self.settings.layer or self.model.card.default_layer
        check_layers(self.model, [self.layer])

    @cached_property
    def train(self) -> Dataset:
        """What the network was trained on."""
        return load_dataset(self.model.card.dataset, "train", self.settings.limit_train, on_progress=self.on_progress)

    @cached_property
    def test(self) -> Dataset:
        """The tests."""
        return load_dataset(self.tests_name, "test", self.settings.limit_test, on_progress=self.on_progress)

    @property
    def learnt(self) -> Source:
        """The training inputs, and how workers open them."""
        return self._source(self.train, self.settings.limit_train)

    @property
    def tests(self) -> Source:
        """The tests, and how workers open them."""
        return self._source(self.test, self.settings.limit_test)

    def _source(self, data: Dataset, limit: int | None) -> Source:
        source = Source.here(self.model.card, lambda: self.model, data)
        return replace(source, model=self.model_name, limit=limit, prepare=self._opens)

    def _shared(self) -> AbstractContextManager[Executor]:
        """Return the executor, which stays open behind a `with` block."""
        return nullcontext(self.find_executor())

    @cached_property
    def m(self) -> int:
        """How many important neurons there are."""
        given = self.settings.m
        return usual_m(self.model, self.train, self.layer) if given is None else given

    @property
    def fingerprints(self) -> Fingerprints:
        """Of the network, its training inputs and the tests."""
        return self.model.card.fingerprint, self.train.fingerprint, self.test.fingerprint

    @property
    def facts(self) -> Mapping[str, str]:
        """What is checked, by name."""
        card = self.model.card
        return {
            "network": f"{card.name} ({card.fingerprint})",
            "tests": f"{len(self.test):,} of {self.test.name} ({self.test.fingerprint})",
            "layer": self.layer,
            "m": str(self.m),
            "rule": self.settings.idc.relevance.rule,
        }

    @property
    def decisive(self) -> Mapping[str, object]:
        """Settings that all results follow from besides network, data and limit, as plain values."""
        settings = self.settings
        return {
            "layer": self.layer,
            "limit_train": settings.limit_train,
            "limit_test": settings.limit_test,
            "m": self.m,
            **settings.idc.as_dict(),
            "clusters": list(settings.clusters),
        }

    @cached_property
    def analysis(self) -> Analysis:
        """The whole method on the check's layer."""
        settings, card = self.settings, self.model.card
        parts = settings.limit_test is not None or settings.limit_train != DATASETS[card.dataset].learns_from
        plan = PlannedAnalysis(card, self.train, self.test, self.layer, self.m, settings.idc, parts)
        return plan.planned((self.learnt, self.tests), self._shared).kept(self.on_progress)

    @cached_property
    def predictions(self) -> Predictions:
        """The network's predictions for the tests."""
        scores = trace_inputs(self.find_executor(), self.tests, (), on_progress=self.on_progress).scores
        return predictions_of(scores, self.test.targets, self.test.task)

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """The score of every criterion but IDC that the check limits, by the limit's label: in one pass for all."""
        limits = [limit for limit in self.check.limits if isinstance(limit, Coverage) and not limit.is_idc]
        criteria = [limit.made(self.model, self.layer, self.model.card.layers) for limit in limits]
        fit_criteria(self.find_executor(), criteria, self.learnt, on_progress=self.on_progress)
        update_criteria(self.find_executor(), criteria, self.tests, on_progress=self.on_progress)
        return {limit.label: float(made.score) for limit, made in zip(limits, criteria, strict=True)}

    def class_errors(self, layers: tuple[str, ...], threshold: float) -> ClassErrors:
        """Return the errors of pairs of classes, from activations of some layers, by default all that count."""
        names = layers or countable_layers(self.model)
        check_layers(self.model, names)
        evidence = class_evidence(self.tests, names, threshold, self.class_names, self._shared, self.on_progress)
        return find_errors(evidence, threshold, on_progress=self.on_progress)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the network's classes."""
        return DATASETS[self.model.card.dataset].class_names

    def attack(self, name: str, count: int, seed: int, parameters: Mapping[str, Any]) -> AttackResult:
        """Attack the first tests, so many of them."""
        return attack_inputs(
            self.find_executor(), self.tests, name, most=count, seed=seed, on_progress=self.on_progress, **parameters
        )

    def check_classes(self, kind: str) -> None:
        """Refuse a limit on right and wrong where the tests have none."""
        if self.test.task != "classification":
            raise SettingError(f"{kind} is for classification, and the tests are for {self.test.task}.")
        if self.test.class_names != self.class_names:
            raise SettingError(f"{kind} is not defined: the tests have other classes than the network.")


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
        gate.checks[self.number].enter(gate.folder)
