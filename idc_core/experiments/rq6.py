"""RQ6: whether training with inputs that raise IDC helps more than with as many random ones, or with none."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.result import Analysis
from idc_core.base.progress import Progress
from idc_core.coverage.cell_table import among
from idc_core.coverage.cells import Codes, assign, encode
from idc_core.coverage.closest_inputs import spread, to_own_cell
from idc_core.coverage.growth import smallest_subset
from idc_core.coverage.idc_settings import OPTIONS, IdcOptions
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.random_neurons import Seeds, check_seeds
from idc_core.experiments.retraining import (
    APART,
    Addition,
    Examples,
    RetrainingPlan,
    Start,
    Test,
    attacked,
    usual_recipe,
)
from idc_core.experiments.retraining_results import RetrainedNetwork, Retraining
from idc_core.models.weights import fingerprint
from idc_core.perturbation import guided_noise, random_noise
from idc_core.store.cache import ArrayFolder, records_folder
from idc_core.suites import SUITES, original, perturbed, select_tests, union
from idc_core.suites.suite import Suite, content_address
from idc_core.tracing.trace import collect

NONE, RANDOM, RAISING = "none", "random", "raising"

ADDITIONS = {NONE: "nothing added", RANDOM: "random perturbed inputs", RAISING: "inputs that raise IDC"}
"""Additions by name, for a person."""

TESTS = {
    "clean": "original tests",
    "noise": "random noise",
    "guided": "relevance-guided noise",
    "fgsm": "FGSM (original)",
    "bim": "BIM (original)",
    "fgsm-anew": "FGSM (retrained)",
}
"""Tests by name, for a person; brackets name the attacked network."""

MOST_ATTACKED = 2_000
"""Tests that are attacked: the first ones."""

_MOST_SOURCES = 10_000
"""Training inputs of each seed, drawn at random, that candidates are made of."""

_MANY = 10_000
"""Training inputs from which on fewer epochs and a smaller share of additions are usual."""


@dataclass(frozen=True)
class RQ6Settings(IdcOptions):
    """Everything a run depends on beside network, data and seeds."""

    layer: str
    m: int = 12
    kinds: tuple[str, ...] = ("noise", "guided")
    """Perturbations that candidates are made by: noise and transforms of `SUITES`."""
    share: float = 0.2
    """Of pixels that get noise, in candidates and in tests."""
    deviation: float = 1.0
    added: float = 0.1
    """Inputs to add, as a share of the training inputs; fewer where not as many raise IDC."""
    epsilon: float = 0.1
    """Largest change by the attacks."""
    epochs: int = 5
    start: Start = "trained"
    suite: str = ""
    """Content address of inputs that are added instead of candidates that raise IDC; empty where those are."""


def usual(train: Dataset, layer: str, neurons: int) -> RQ6Settings:
    """Return the settings that suit the size of some training data and of a layer."""
    many = len(train) >= _MANY
    return RQ6Settings(layer, min(12, neurons), added=0.02 if many else 0.1, epochs=3 if many else 5)


@dataclass(frozen=True, eq=False)
class _CandidatePool:
    """Candidates of one seed: perturbed training inputs with their targets."""

    inputs: NDArray[np.generic]
    targets: NDArray[np.generic]
    origin: NDArray[np.int64]
    """Position of each candidate's training input."""
    kind: NDArray[np.int64]
    """Index into the settings' `kinds`."""
    codes: Codes
    """Cell of each candidate."""
    raising: NDArray[np.int64]
    """Positions of those chosen because they reach cells that the tests do not."""
    random: NDArray[np.int64]
    """Positions of as many drawn from all."""
    gained: int
    """Cells that `raising` adds to those of the tests."""


class Candidates:
    """Makes and chooses what is added to the training data, for every seed.

    Neurons, clusters and the tests' cells are those of the analysis. Each of up to `_MOST_SOURCES` random training
    inputs is perturbed once by each kind. A candidate raises IDC if it reaches a cell that no test reaches. Candidates
    are chosen in rounds: of every such cell the one nearest to the cell's centroids, then the nearest of those left,
    and so on; in the last round cells are drawn at random. Where inputs are `given`, they are added instead. The random
    ones are drawn from all candidates of the same seed. No test is among the candidates.
    """

    def __init__(
        self, model: nn.Module, train: Dataset, learnt: Analysis, settings: RQ6Settings, given: Examples | None = None
    ) -> None:
        for name in settings.kinds:
            if name not in SUITES or SUITES[name].family not in ("noise", "transform"):
                raise SettingError(f"Candidates cannot be made by {name!r}: expected noise or a transform.")
        if not settings.kinds or not 0 < settings.added <= 1:
            raise SettingError(
                f"Expected a kind of perturbation and a share of inputs to add above 0 and at most 1; got "
                f"{settings.kinds!r} and {settings.added!r}."
            )
        self.model, self.train, self.learnt, self.settings, self.given = model, train, learnt, settings, given
        self._last: tuple[int, _CandidatePool] | None = None

    def pool(self, seed: int, on_progress: Progress | None = None) -> _CandidatePool:
        """Return the candidates of a seed; the last ones are kept, as two additions ask for them."""
        if self._last is None or self._last[0] != seed:
            self._last = (seed, self._make(seed, on_progress))
        return self._last[1]

    def raising(self, seed: int) -> Examples:
        """Return the inputs that raise IDC, or those that were given, with their targets."""
        if self.given is not None:
            return self.given
        pool = self.pool(seed)
        return pool.inputs[pool.raising], pool.targets[pool.raising]

    def random(self, seed: int) -> Examples:
        """Return as many random ones, with their targets."""
        pool = self.pool(seed)
        return pool.inputs[pool.random], pool.targets[pool.random]

    def additions(self) -> dict[str, Addition]:
        """Return what `retrain` takes."""
        return {NONE: None, RANDOM: self.random, RAISING: self.raising}

    def _make(self, seed: int, on_progress: Progress | None) -> _CandidatePool:
        random = np.random.default_rng(seed)
        positions = np.sort(random.permutation(len(self.train))[:_MOST_SOURCES])
        source = select_tests(original(self.train), positions)
        made = [
            perturbed(source, name, self.model, seed=seed, **self._settings_of(name)) for name in self.settings.kinds
        ]
        everything = union(made)
        inputs = everything.take(np.arange(len(everything)), on_progress)
        layer = self.learnt.layer
        active = collect(self.model, inputs, [layer], on_progress=on_progress).activations[layer]
        codes, distances = self._place(active[:, self.learnt.important])
        raising = np.zeros(0, np.int64) if self.given is not None else self._raising(codes, distances, random)
        count = len(raising) if self.given is None else len(self.given[1])
        if count > len(codes):
            raise DataError(
                f"Expected at most as many inputs to add as there are random ones, {len(codes):,}, got {count:,}: use "
                "fewer of them or more kinds of perturbation."
            )
        return _CandidatePool(
            inputs,
            everything.targets,
            everything.origin,
            np.repeat(np.arange(len(made)), len(source)),
            codes,
            raising,
            np.sort(random.permutation(len(codes))[:count]),
            len(np.unique(codes[raising])),
        )

    def _raising(self, codes: Codes, distances: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
        """Choose candidates that reach cells which the tests do not."""
        new = np.flatnonzero(~among(codes, np.unique(self.learnt.codes)))
        if not len(new):
            raise DataError(
                f"None of the {len(codes):,} perturbed training inputs reaches a cell of layer {self.learnt.layer} "
                f"that the tests do not (m = {self.learnt.m}): none raises IDC. Choose more neurons, another layer or "
                "stronger noise."
            )
        most = max(1, round(self.settings.added * len(self.train)))
        return new[_in_rounds(codes[new], distances[new], most, random)]

    def _settings_of(self, name: str) -> dict[str, Any]:
        noisy = SUITES[name].family == "noise"
        return {"share": self.settings.share, "deviation": self.settings.deviation} if noisy else {}

    def _place(self, active: NDArray[np.floating]) -> tuple[Codes, NDArray[np.float64]]:
        """Return the cell of every candidate, and its distance from the centroids of that."""
        learnt = self.learnt
        places = assign(active, learnt.centroids, [neuron.boundaries for neuron in learnt.clusters])
        unit = spread(learnt.train_activations)
        away = to_own_cell(active, learnt.centroids, places, unit)
        return encode(places, [len(neuron) for neuron in learnt.centroids]), away


def _in_rounds(
    codes: Codes, distances: NDArray[np.floating], most: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Choose at most `most` inputs, int64 (k,) ascending: one per cell before any cell gets a second, and so on.

    Of a cell's inputs the one nearest to its centroids comes first; the last round's cells are drawn at random.
    """
    left = np.arange(len(codes))
    taken: list[NDArray[np.int64]] = []
    room = min(most, len(codes))
    while room:
        round_ = left[smallest_subset(codes[left], distances[left])]
        if len(round_) > room:
            round_ = random.choice(round_, room, replace=False)
        taken.append(round_)
        left = np.setdiff1d(left, round_)
        room -= len(round_)
    return np.sort(np.concatenate(taken)).astype(np.int64)


def _make_tests(
    model: nn.Module, test: Dataset, settings: RQ6Settings, *, on_progress: Progress | None = None
) -> dict[str, Test]:
    """Make the tests by the names of `TESTS`: original, with noise, with guided noise, and for classifiers attacked.

    Relevance and fixed attacks are those of the network before retraining.
    """
    share, deviation, targets = settings.share, settings.deviation, test.targets
    noisy = random_noise(test.inputs, share=share, deviation=deviation, seed=APART, numbers=test.ids)
    guided = guided_noise(
        model, test.inputs, share=share, deviation=deviation, seed=APART, numbers=test.ids, on_progress=on_progress
    )
    made: dict[str, Test] = {"clean": (test.inputs, targets), "noise": (noisy, targets), "guided": (guided, targets)}
    if test.task != "classification":
        return made
    some = slice(0, MOST_ATTACKED)
    fixed = partial(attacked, inputs=test.inputs[some], targets=targets[some], epsilon=settings.epsilon)
    made["fgsm"] = fixed(model, on_progress=on_progress)
    made["bim"] = fixed(model, name="bim", on_progress=on_progress)
    made["fgsm-anew"] = fixed
    return made


def rq6_results(
    model: nn.Module,
    train: Dataset,
    settings: RQ6Settings,
    seeds: Seeds,
    networks: dict[tuple[str, int], RetrainedNetwork],
) -> Retraining:
    """Return the finished networks of a run, by addition and seed, as its result so far."""
    start = settings.start
    steps = len(train) // min(usual_recipe(model, start).batch, len(train))
    # As `_make_tests` makes them: attacks are on classifiers.
    tests = tuple(TESTS) if train.task == "classification" else ("clean", "noise", "guided")
    listed = check_seeds(seeds)
    return Retraining(tuple(ADDITIONS), listed, tests, train.task, settings.epochs, steps, len(train), start, networks)


def run_store(model: nn.Module, train: Dataset, test: Dataset, settings: RQ6Settings) -> ArrayFolder:
    """Return the folder of a run's finished networks; its name is a digest of network, data and settings."""
    data = [(one.fingerprint, len(one)) for one in (train, test)]
    options = settings.options
    chosen = {one.name: getattr(settings, one.name) for one in fields(settings) if one.name not in options}
    # Left out where they are as usual: runs from before these could be set are found again.
    if not settings.suite:
        del chosen["suite"]
    chosen |= {one.name: options[one.name] for one in OPTIONS if options[one.name] != one.default}
    return ArrayFolder(records_folder() / "rq6" / content_address(fingerprint(model), data, chosen))


def apart_from(suite: Suite, test: Dataset) -> NDArray[np.bool_]:
    """Return whether each test, (n,), is none that the inputs of a suite were made of, as far as the suite tells."""
    known = any(step.settings.get("fingerprint") == test.fingerprint for step in suite.provenance)
    return ~np.isin(test.ids, [suite.origin, suite.partner]) if known else np.ones(len(test), np.bool_)


def prepare_rq6(
    model: nn.Module,
    train: Dataset,
    test: Dataset,
    learnt: Analysis,
    settings: RQ6Settings,
    *,
    given: Examples | None = None,
    on_progress: Progress | None = None,
) -> RetrainingPlan:
    """Make the tests and the additions, from an analysis with the same layer, m and clustering as the settings.

    Inputs and targets that are `given` are added instead of candidates that raise IDC; `settings.suite` names them, and
    no test is to be one that they were made of.
    """
    if (given is None) != (settings.suite == ""):
        raise SettingError("Inputs that are given need a name in the settings, and a name there needs inputs.")
    settings.refuse_original("RQ6")
    if (learnt.layer, learnt.m) != (settings.layer, settings.m):
        raise SettingError(
            f"The cells are of layer {learnt.layer} with m = {learnt.m}; the settings ask for layer "
            f"{settings.layer} with m = {settings.m}."
        )
    if any(learnt.settings[name] != value for name, value in settings.options.items()):
        held = {name: learnt.settings[name] for name in settings.options}
        raise SettingError(f"The cells' neurons were clustered by {held}; the settings say {settings.options}.")
    additions = Candidates(model, train, learnt, settings, given).additions()
    tests = _make_tests(model, test, settings, on_progress=on_progress)
    store = run_store(model, train, test, settings)
    return RetrainingPlan(model, train, additions, tests, store, settings.epochs, settings.start)
