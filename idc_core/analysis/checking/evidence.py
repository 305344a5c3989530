"""What detectors look at: samples of training inputs and tests, what the network says of them, and other passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from idc_core.analysis.checking.digests import Digests, digests
from idc_core.analysis.checking.findings import Mistake, Quality
from idc_core.base.progress import Progress
from idc_core.datasets import Dataset
from idc_core.lrp.captures import CaptureTraits
from idc_core.lrp.named_inputs import filled
from idc_core.lrp.randomness import randomness_allowed
from idc_core.lrp.session import undisturbed
from idc_core.models.network import Network
from idc_core.tracing.batching import placed, probe
from idc_core.tracing.trace import collect
from idc_core.tracing.traces import Traces

MOST, _FEWEST = 500, 60
"""Inputs of each split that are drawn, and how many of large inputs at least."""

VALUES = 1 << 24
"""Numbers in the inputs drawn from one split: 500 inputs of 3 x 105 x 105, 111 of 3 x 224 x 224."""

RAW = 128
"""Inputs of the passes that look at the network's own output."""


@dataclass
class Evidence:
    """What is known of a network and its data; samples are read once, by index arrays.

    Attributes
    ----------
    model : Network
        With its card.
    train, test : Dataset
        Their inputs may be read lazily: only slices and index arrays are asked for.
    layers : sequence of str
        Those that gave a value for one input.
    code : bool
        Whether the network comes from a person's code, not from a file.
    on_progress : Progress, optional
    found : list of Mistake
        By the detectors that have run.
    notes : list of str
        What they saw that is no mistake.
    """

    model: Network
    train: Dataset
    test: Dataset
    layers: Sequence[str]
    code: bool
    on_progress: Progress | None = None
    found: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def has_found(self, *kinds: str) -> bool:
        """Whether a mistake of one of these kinds was found."""
        return any(mistake.kind in kinds for mistake in self.found)

    def remedy(self, code: str, file: str) -> str:
        """Return what to do for a network from code, or for one from a file."""
        return code if self.code else file

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """The tests drawn, in random order."""
        return drawn(self.test)

    @cached_property
    def training_positions(self) -> NDArray[np.int64]:
        """The training inputs drawn, in random order."""
        return drawn(self.train)

    @cached_property
    def inputs(self) -> NDArray[np.float32] | NDArray[np.int64]:
        """The tests drawn."""
        return np.asarray(self.test.inputs[self.positions])

    @cached_property
    def training_inputs(self) -> NDArray[np.float32] | NDArray[np.int64]:
        """The training inputs drawn."""
        return np.asarray(self.train.inputs[self.training_positions])

    @cached_property
    def targets(self) -> NDArray[np.int64] | NDArray[np.float32]:
        """Of the tests drawn."""
        return np.asarray(self.test.targets[self.positions])

    @cached_property
    def training_targets(self) -> NDArray[np.int64] | NDArray[np.float32]:
        """Of the training inputs drawn."""
        return np.asarray(self.train.targets[self.training_positions])

    @cached_property
    def traces(self) -> Traces:
        """Scores and activations of the tests drawn."""
        with randomness_allowed():
            return collect(self.model, self.inputs, self.layers, on_progress=self.on_progress)

    @property
    def scores(self) -> NDArray[np.float32]:
        """Scores of the tests drawn, before a softmax that the engine sees."""
        return self.traces.scores

    @cached_property
    def training_scores(self) -> NDArray[np.float32]:
        """Scores of the training inputs drawn."""
        return self.scores_of(self.training_inputs)

    @cached_property
    def finite(self) -> bool:
        """Whether all scores of the tests drawn are finite."""
        return bool(np.isfinite(self.scores).all())

    def scores_of(self, inputs: NDArray[np.float32] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the scores of other inputs."""
        with randomness_allowed():
            return collect(self.model, inputs, [], on_progress=self.on_progress).scores

    @cached_property
    def training_digests(self) -> Digests:
        """Which training inputs are identical."""
        return digests(self.train, self.on_progress)

    @cached_property
    def test_digests(self) -> Digests:
        """Which tests are identical."""
        return digests(self.test, self.on_progress)

    @cached_property
    def raw(self) -> NDArray[np.float32]:
        """What the network itself returns for the first tests drawn, a softmax included."""
        return self.raw_of(self.inputs[:RAW])

    def raw_of(self, inputs: NDArray[np.float32] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return what the network itself returns, (n, outputs)."""
        least, size = self.traits.least, min(len(inputs), self.traits.most)
        outputs = []
        with undisturbed(self.model), torch.no_grad():
            for start in range(0, len(inputs), size):
                given = placed(self.model, inputs[start : start + size])
                whole = filled(given, least)
                output: torch.Tensor = self.model(whole)
                outputs.append(output.reshape(len(whole), -1)[: len(given)].float().cpu().numpy())
        return np.concatenate(outputs)

    @cached_property
    def traits(self) -> CaptureTraits:
        """How many rows the network needs in a batch."""
        with randomness_allowed():
            return probe(self.model, placed(self.model, self.inputs[:1]), (), None).traits


def drawn(data: Dataset) -> NDArray[np.int64]:
    """Return the positions of some inputs, drawn with a fixed seed."""
    size = max(1, int(np.prod(data.inputs.shape[1:])))
    most = min(MOST, max(_FEWEST, VALUES // size))
    return np.random.default_rng(0).permutation(len(data))[:most].astype(np.int64)


def quality(data: Dataset, targets: NDArray[np.int64] | NDArray[np.float32], scores: NDArray[np.float32]) -> Quality:
    """Return accuracy or root mean squared error of scores."""
    if data.class_names:
        measure, value = "accuracy", float((scores.argmax(1) == targets).mean())
        baseline = float(np.bincount(targets.astype(np.int64)).max() / len(targets))
    else:
        measure, value = "RMSE", float(np.sqrt(((scores[:, 0] - targets) ** 2).mean()))
        baseline = float(targets.std())
    return Quality(data.split, measure, value, baseline, len(targets), len(data))


def kappa(targets: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> float:
    """Return Cohen's kappa: 1 where all predictions are right, 0 where they do not depend on the targets."""
    table = confusion(targets, predicted, classes) / len(targets)
    by_chance = float(table.sum(0) @ table.sum(1))
    return 0.0 if by_chance >= 1 else (float(np.trace(table)) - by_chance) / (1 - by_chance)


def confusion(targets: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return how often each class (rows) was predicted as each class (columns)."""
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (targets, predicted), 1)
    return table


def rises_by_chance(better: int, worse: int) -> float:
    """Return how probable at least so many inputs that got better are, if as many get worse (sign test, one-sided)."""
    from scipy.special import bdtrc

    return float(bdtrc(better - 1, better + worse, 0.5)) if better else 1.0
