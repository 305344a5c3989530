"""Candidates to train on: perturbed training inputs, and which of them raise IDC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.analysis.analysis import Analysis
from idc_core.coverage.cell_table import among
from idc_core.coverage.cells import Codes, assign, encode
from idc_core.coverage.closest_inputs import spread, to_own_cell
from idc_core.coverage.growth import smallest_subset
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError
from idc_core.experiments.robustness import Addition, Examples, Start
from idc_core.progress import Progress
from idc_core.suites import SUITES, original, perturbed, select_tests, union
from idc_core.tracing.trace import collect

NONE, RANDOM, RAISING = "none", "random", "raising"
"""Names of the three additions."""

MOST_SOURCES = 10_000
"""Training inputs of each seed, drawn at random, that candidates are made of."""

MANY = 10_000
"""Training inputs from which on fewer epochs and a smaller share of additions are usual."""

CLUSTERED = ("clusters", "drop_zeros", "clustering")
"""Settings that say how the neurons are clustered."""


@dataclass(frozen=True)
class Settings:
    """Everything a run depends on beside network, data and seeds.

    Attributes
    ----------
    layer : str
    m : int
        Important neurons whose states tell inputs apart.
    kinds : tuple of str
        Perturbations that candidates are made by: noise and transforms of `SUITES`.
    share, deviation : float
        Share of pixels that get noise, and its standard deviation, of candidates and of tests.
    added : float
        Inputs to add, as a share of the training inputs; fewer where not as many raise IDC.
    epsilon : float
        Largest change by the attacks.
    epochs : int
    start : {"trained", "scratch"}
    clusters, drop_zeros, clustering
        How the neurons are clustered, as in `IDC`.
    """

    layer: str
    m: int = 12
    kinds: tuple[str, ...] = ("noise", "guided")
    share: float = 0.2
    deviation: float = 1.0
    added: float = 0.1
    epsilon: float = 0.1
    epochs: int = 5
    start: Start = "trained"
    clusters: tuple[int, ...] = (2, 3, 4)
    drop_zeros: bool = False
    clustering: str = "k-means"

    @property
    def clustered(self) -> dict[str, Any]:
        """How the neurons are clustered, by the names that `analyze` takes."""
        return {name: getattr(self, name) for name in CLUSTERED}


def usual(train: Dataset, layer: str, neurons: int) -> Settings:
    """Return the settings that suit the size of some training data and of a layer."""
    many = len(train) >= MANY
    return Settings(layer, min(12, neurons), added=0.02 if many else 0.1, epochs=3 if many else 5)


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates of one seed: perturbed training inputs.

    Attributes
    ----------
    inputs, targets : ndarray (n, ...), (n,)
        The right answer is that of the training input.
    origin : ndarray, int64 (n,)
        Position of that input in the training data.
    kind : ndarray, int64 (n,)
        Index into the settings' `kinds`.
    codes : ndarray (n,)
        Cell of every candidate.
    raising : ndarray, int64 (k,)
        Positions of those chosen because they reach cells that the tests do not.
    random : ndarray, int64 (k,)
        Positions of as many drawn from all.
    gained : int
        Cells that `raising` adds to those of the tests.
    """

    inputs: NDArray[Any]
    targets: NDArray[Any]
    origin: NDArray[np.int64]
    kind: NDArray[np.int64]
    codes: Codes
    raising: NDArray[np.int64]
    random: NDArray[np.int64]
    gained: int


class Candidates:
    """Makes and chooses what is added to the training data, anew for every seed.

    Parameters
    ----------
    model : Module
    train : Dataset
    learnt : Analysis
        Of the bench: neurons and clusters are those of the training inputs, and its tests' cells those to add to.
    settings : Settings

    Notes
    -----
    For every seed, each of up to `MOST_SOURCES` random training inputs is perturbed once by each kind. A candidate
    raises IDC if it reaches a cell that no test reaches. Candidates are chosen in rounds: of every such cell the one
    nearest to the cell's centroids, then of every such cell the nearest one of those left, and so on; in the last round
    cells are drawn at random. The random ones are drawn from all candidates of the same seed. Tests take part only by
    which cells they reach: none is among the candidates.
    """

    def __init__(self, model: nn.Module, train: Dataset, learnt: Analysis, settings: Settings) -> None:
        for name in settings.kinds:
            if name not in SUITES or SUITES[name].family not in ("noise", "transform"):
                raise SettingError(f"Candidates cannot be made by {name!r}: expected noise or a transform.")
        if not settings.kinds or not 0 < settings.added <= 1:
            raise SettingError(
                f"Expected a kind of perturbation and a share of inputs to add above 0 and at most 1; got "
                f"{settings.kinds!r} and {settings.added!r}."
            )
        self.model, self.train, self.learnt, self.settings = model, train, learnt, settings
        self._last: tuple[int, Pool] | None = None

    def pool(self, seed: int, on_progress: Progress | None = None) -> Pool:
        """Return the candidates of a seed; the last ones are kept, as two additions ask for them.

        Raises
        ------
        DataError
            If none of them reaches a cell that the tests do not.
        """
        if self._last is None or self._last[0] != seed:
            self._last = (seed, self._make(seed, on_progress))
        return self._last[1]

    def raising(self, seed: int) -> Examples:
        """Return the inputs that raise IDC, with their targets."""
        pool = self.pool(seed)
        return pool.inputs[pool.raising], pool.targets[pool.raising]

    def random(self, seed: int) -> Examples:
        """Return as many random ones, with their targets."""
        pool = self.pool(seed)
        return pool.inputs[pool.random], pool.targets[pool.random]

    def additions(self) -> dict[str, Addition]:
        """Return what `retrain` takes."""
        return {NONE: None, RANDOM: self.random, RAISING: self.raising}

    def _make(self, seed: int, on_progress: Progress | None) -> Pool:
        random = np.random.default_rng(seed)
        wanted = np.sort(random.permutation(len(self.train))[:MOST_SOURCES])
        source = select_tests(original(self.train), wanted)
        made = [
            perturbed(source, name, self.model, seed=seed, **self._settings_of(name)) for name in self.settings.kinds
        ]
        everything = union(made)
        inputs = everything.take(np.arange(len(everything)), on_progress)
        layer = self.learnt.layer
        active = collect(self.model, inputs, [layer], on_progress=on_progress).activations[layer]
        codes, distances = self._place(active[:, self.learnt.important])
        new = np.flatnonzero(~among(codes, np.unique(self.learnt.codes)))
        if not len(new):
            raise DataError(
                f"None of the {len(codes):,} perturbed training inputs reaches a cell of layer {layer} that the tests "
                f"do not (m = {self.learnt.m}): none raises IDC. Choose more neurons, another layer or stronger noise."
            )
        most = max(1, round(self.settings.added * len(self.train)))
        raising = new[in_rounds(codes[new], distances[new], most, random)]
        return Pool(
            inputs,
            everything.targets,
            everything.origin,
            np.repeat(np.arange(len(made)), len(source)),
            codes,
            raising,
            np.sort(random.permutation(len(codes))[: len(raising)]),
            len(np.unique(codes[raising])),
        )

    def _settings_of(self, name: str) -> dict[str, Any]:
        noisy = SUITES[name].family == "noise"
        return {"share": self.settings.share, "deviation": self.settings.deviation} if noisy else {}

    def _place(self, active: NDArray[Any]) -> tuple[Codes, NDArray[np.float64]]:
        """Return the cell of every candidate, and its distance from the centroids of that."""
        learnt = self.learnt
        places = assign(active, learnt.centroids, [one.boundaries for one in learnt.clusters])
        unit = spread(learnt.train_activations)
        away = to_own_cell(active, learnt.centroids, places, unit)
        return encode(places, [len(one) for one in learnt.centroids]), away


def in_rounds(
    codes: Codes, distances: NDArray[np.floating], most: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Choose inputs so that every cell gets one before any gets a second, and so on.

    Parameters
    ----------
    codes : ndarray (n,)
        Cell of every input.
    distances : ndarray of float (n,)
        From the centroids of the cell: of a cell's inputs the nearest comes first.
    most : int
        How many to choose; fewer where there are not as many.
    random : Generator
        Draws cells where not all get a place in the last round.

    Returns
    -------
    ndarray, int64 (k,)
        Positions, ascending.
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
