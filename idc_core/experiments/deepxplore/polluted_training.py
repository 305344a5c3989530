"""Polluted training data found by differences between a network trained on it and one that was not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.arrays import Floats
from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError
from idc_core.experiments.deepxplore.trained_networks import trained_network
from idc_core.generation import differential_search
from idc_core.models.entry import Recipe
from idc_core.models.network import Network
from idc_core.models.registry import find_entry
from idc_core.tracing.trace import collect

_WINDOW = 7
_C1, _C2 = 0.01**2, 0.03**2
"""Of the structural similarity, for values in 0..1."""

_AT_ONCE = 4
"""Pictures that are compared with all others at a time."""


@dataclass(frozen=True)
class Pollution:
    """A share of the training inputs of one class that are labelled as another."""

    true: int = 9
    label: int = 1
    share: float = 0.3
    seed: int = 0


@dataclass(frozen=True, eq=False)
class FoundPollution:
    """Training inputs with the wrong label, ranked by what resembles them.

    Attributes
    ----------
    polluted : int
        Training inputs whose label was changed.
    candidates : int
        Training inputs with that label, changed or not.
    differences : int
        Pictures that the clean network classifies as the true class and the other one as the label.
    ranks : dict of str to ndarray, bool (candidates,)
        By way of ranking, which candidates are polluted, the most suspected first.
    """

    polluted: int
    candidates: int
    differences: int
    ranks: dict[str, NDArray[np.bool_]]

    def found(self, way: str) -> float:
        """Return the share of the polluted inputs among as many of the most suspected, 0..1."""
        return float(self.ranks[way][: self.polluted].mean())

    def auc(self, way: str) -> float:
        """Return the chance that a polluted input is suspected more than one that is not, 0..1."""
        marks = self.ranks[way]
        behind = np.cumsum((~marks)[::-1])[::-1]
        return float(behind[marks].sum() / (marks.sum() * (~marks).sum()))


WAYS = {
    "differences": "likest to a generated difference",
    "tests": "likest to an unchanged test of the true class",
    "loss": "the clean network's loss",
}
"""Ways of ranking, for a person; by chance, the share of polluted inputs among the candidates is found."""


def polluted_training(
    name: str,
    train: Dataset,
    test: Dataset,
    clean: Network,
    pollution: Pollution | None = None,
    *,
    searched: int = 400,
    recipe: Recipe | None = None,
    on_progress: Progress | None = None,
) -> FoundPollution:
    """Train a network of the registry on polluted labels, search for differences, and look up what resembles them.

    `clean` is the network trained without pollution. Differences are searched from `searched` tests, by light,
    occlusion and blackout; each candidate is as suspect as its largest structural similarity to one. The trained
    network is kept. Raises DataError where no difference of this kind is found; CancelledError if `on_progress`
    returned False.

    Notes
    -----
    K. Pei et al., DeepXplore, SOSP 2017, section 7.3: LeNet-5, 30 % of the nines labelled one; training inputs that
    resemble error-inducing inputs are taken as polluted, 95.6 % of them rightly found. How many inputs were suspected
    for that is not known: here as many as are polluted, so that share found and precision are one number. Structural
    similarity after Z. Wang et al., IEEE Transactions on Image Processing 13(4), 2004, with a flat window of 7 x 7.
    """
    chosen = pollution or Pollution()
    marks = _marked(train, chosen)
    targets = np.where(marks, chosen.label, train.targets).astype(train.targets.dtype)
    about = f"{chosen.share:g} of {chosen.true} as {chosen.label}, seed {chosen.seed}"
    data = replace(train, targets=targets, fingerprint=f"{train.fingerprint}, {about}")
    entry = find_entry(name)
    how = recipe or entry.recipe or Recipe("adamw", 3e-3, batch=128, epochs=10)
    network = trained_network(entry.build, name, data, how, chosen.seed, on_progress)
    generated = _differences((clean, network), test, chosen, searched, on_progress)
    if not len(generated):
        raise DataError(
            f"No difference between class {chosen.true} and {chosen.label} was found from {searched:,} tests."
        )
    places = np.flatnonzero(targets == chosen.label)
    natural = test.inputs[test.targets == chosen.true][: len(generated)]
    inputs = train.inputs[places]
    scores = torch.from_numpy(collect(clean, inputs, []).scores.astype(np.float64))
    suspicion = {
        "differences": likeness(inputs, generated, on_progress),
        "tests": likeness(inputs, natural, on_progress),
        "loss": -F.log_softmax(scores, 1)[:, chosen.label].numpy(),
    }
    polluted = marks[places]
    ranks = {way: polluted[np.argsort(-values, kind="stable")] for way, values in suspicion.items()}
    return FoundPollution(int(marks.sum()), len(places), len(generated), ranks)


def likeness(inputs: NDArray[np.generic], others: NDArray[np.generic], on_progress: Progress | None = None) -> Floats:
    """Return the largest structural similarity of each input (n, C, H, W) to one of the others (k, C, H, W), (n,)."""
    first, second = (torch.from_numpy(np.asarray(part, np.float32)) for part in (inputs, others))
    mean = [_smooth(part) for part in (first, second)]
    spread = [_smooth(part * part) - middle * middle for part, middle in zip((first, second), mean, strict=True)]
    best = torch.full((len(first),), -torch.inf)
    for start in range(0, len(second), _AT_ONCE):
        report(on_progress, start, len(second), "pictures compared with training inputs")
        for place in range(start, min(start + _AT_ONCE, len(second))):
            product = mean[0] * mean[1][place]
            both = _smooth(first * second[place]) - product
            luminance = (2 * product + _C1) / (mean[0].square() + mean[1][place].square() + _C1)
            structure = (2 * both + _C2) / (spread[0] + spread[1][place] + _C2)
            best = torch.maximum(best, (luminance * structure).flatten(1).mean(1))
    return np.asarray(best.numpy(), np.float64)


def _smooth(pictures: Tensor) -> Tensor:
    """Return means over the window at every place where it fits."""
    return F.avg_pool2d(pictures, _WINDOW, stride=1)


def _marked(train: Dataset, chosen: Pollution) -> NDArray[np.bool_]:
    """Draw the training inputs whose label changes, bool (n,)."""
    own = np.flatnonzero(train.targets == chosen.true)
    marks = np.zeros(len(train), bool)
    marks[np.random.default_rng(chosen.seed).permutation(own)[: round(chosen.share * len(own))]] = True
    return marks


def _differences(
    models: tuple[Network, Network], test: Dataset, chosen: Pollution, searched: int, on_progress: Progress | None
) -> NDArray[np.float32]:
    """Return pictures that the clean network calls the true class and the other one the label."""
    places = np.random.default_rng(chosen.seed).permutation(np.flatnonzero(test.targets == chosen.true))[:searched]
    parts = []
    for constraint in ("light", "occlusion", "blackout"):
        found = differential_search(
            models, test.inputs[places], constraint, turn=1, seed=chosen.seed, on_progress=on_progress
        )
        if found.stopped:
            raise CancelledError("Stopped on request while differences were searched for.")
        wanted = (found.predictions == (chosen.true, chosen.label)).all(1)
        parts.append(found.inputs[wanted & (found.iterations > 0)])
    return np.concatenate(parts)
