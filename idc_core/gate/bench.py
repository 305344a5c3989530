"""What the limits of one check are measured on: network and data, and the passes that several limits share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.analysis import usual_m
from idc_core.analysis.predictions import Predictions, predictions_of
from idc_core.analysis.result import Analysis
from idc_core.confusion import ClassErrors, Evidence, countable_layers, find_errors, network_evidence
from idc_core.coverage.registry import Criterion
from idc_core.coverage.streamed import fit_all, update_all
from idc_core.datasets import DATASETS, Dataset, load_dataset
from idc_core.errors import SettingError
from idc_core.gate.on_coverage import Coverage
from idc_core.gate.opening import open_names
from idc_core.gate.settings import Check
from idc_core.lrp.session import check_layers
from idc_core.models import load_model
from idc_core.models.network import Network
from idc_core.perturbation import AttackResult, attack
from idc_core.progress import Progress
from idc_core.runs import Planned, PlannedAnalysis, planned_statistics
from idc_core.runs.planned import Fingerprints
from idc_core.tracing.trace import collect


class Bench:
    """The network of a check and its data, each loaded when it is first asked for.

    Parameters
    ----------
    check : Check
    folder : Path
        Where paths in the check start from.
    on_progress : Progress, optional
    """

    def __init__(self, check: Check, folder: Path, on_progress: Progress | None = None) -> None:
        self.check, self.settings, self.on_progress = check, check.settings, on_progress
        self.model_name, self.tests_name = open_names(check, folder)
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
        one = self.settings
        return {
            "layer": self.layer,
            "limit_train": one.limit_train,
            "limit_test": one.limit_test,
            "m": self.m,
            **one.idc.as_dict(),
            "clusters": list(one.clusters),
        }

    @cached_property
    def analysis(self) -> Analysis:
        """The whole method on the check's layer."""
        one, card = self.settings, self.model.card
        parts = one.limit_test is not None or one.limit_train != DATASETS[card.dataset].learns_from
        plan = PlannedAnalysis(card, self.train, self.test, self.layer, self.m, one.idc, parts)
        return self.planned(plan).kept(self.on_progress)

    def planned(self, plan: PlannedAnalysis) -> Planned[Analysis]:
        """Return how the analysis is made."""
        return plan.planned(lambda: self.model)

    @cached_property
    def predictions(self) -> Predictions:
        """The network's predictions for the tests."""
        return predictions_of(self.predict(), self.test.targets, self.test.task)

    def predict(self) -> NDArray[np.float32]:
        """Return the network's scores of the tests."""
        return collect(self.model, self.test, (), on_progress=self.on_progress).scores

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """The score of every criterion but IDC that the check limits, by the limit's label: in one pass for all."""
        limits = [one for one in self.check.limits if isinstance(one, Coverage) and not one.is_idc]
        criteria = [one.made(self.model, self.layer, self.model.card.layers) for one in limits]
        self.measure(criteria)
        return {one.label: float(made.score) for one, made in zip(limits, criteria, strict=True)}

    def measure(self, criteria: Sequence[Criterion]) -> None:
        """Let criteria learn from the training inputs and see the tests."""
        fit_all(criteria, self.train, on_progress=self.on_progress)
        update_all(criteria, self.test, on_progress=self.on_progress)

    def class_errors(self, layers: tuple[str, ...], threshold: float) -> ClassErrors:
        """Return the errors of pairs of classes, from activations of some layers, by default all that count."""
        names = layers or countable_layers(self.model)
        check_layers(self.model, names)
        return find_errors(self.evidence(names, threshold), threshold, on_progress=self.on_progress)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the network's classes."""
        return DATASETS[self.model.card.dataset].class_names

    def evidence(self, layers: tuple[str, ...], threshold: float) -> Evidence:
        """Return what errors of classes are found in: predictions, and which neurons of some layers are active."""
        statistics = planned_statistics(self.model.card, lambda: self.model, self.test, layers).kept(self.on_progress)
        return network_evidence(statistics, self.test, self.class_names)

    def attack(self, name: str, count: int, seed: int, parameters: Mapping[str, Any]) -> AttackResult:
        """Attack the first tests, so many of them."""
        inputs, targets, numbers = self.test.inputs[:count], self.test.targets[:count], self.test.ids[:count]
        return attack(
            self.model, inputs, targets, name, seed=seed, numbers=numbers, on_progress=self.on_progress, **parameters
        )

    def check_classes(self, kind: str) -> None:
        """Refuse a limit on right and wrong where the tests have none."""
        if self.test.task != "classification":
            raise SettingError(f"{kind} is for classification, and the tests are for {self.test.task}.")
        if self.test.class_names != self.class_names:
            raise SettingError(f"{kind} is not defined: the tests have other classes than the network.")
