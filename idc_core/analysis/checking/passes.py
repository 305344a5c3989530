"""Mistakes that weights, layers and further passes show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from idc_core.analysis.checking.detectors import detector, finite_scores, numbers, varied
from idc_core.analysis.checking.evidence import RAW, Evidence
from idc_core.analysis.checking.findings import listed
from idc_core.attribution.digits import said_lost
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.interception import Watch
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import check_gradient, run_watched, undisturbed
from idc_core.models import MODELS, load_model
from idc_core.models.weights import fingerprint
from idc_core.tracing.batching import placed
from idc_core.tracing.company import mixing

_ALONE = 8
"""Inputs that are run in other company."""

_DIFFERENT = 1e-3
"""Difference of two passes, as share of the largest output, beyond what rounding makes."""


def _from_code(evidence: Evidence) -> bool:
    return evidence.code and MODELS[evidence.model.card.name].complete


@detector("weights", "weights that are not finite")
def _find_weights(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find parameters and buffers that are not finite, or finite ones with which scores are not."""
    state = evidence.model.state_dict().items()
    bad = [
        f"{name} ({int((~value.isfinite()).sum()):,} of {value.numel():,})"
        for name, value in state
        if value.is_floating_point() and not value.isfinite().all()
    ]
    if bad:
        yield (
            f"Weights are not finite: {listed(bad)}.",
            "Load the weights of a training that did not diverge, and check how the file was converted.",
        )
    elif not evidence.finite:
        rows = int((~np.isfinite(evidence.scores).all(1)).sum())
        yield (
            f"Scores of {rows} of {len(evidence.scores)} tests are not finite, although all weights are.",
            "Look for a division by zero, a logarithm of zero or an overflow in the network, or check its inputs.",
        )


@detector("constant", "outputs that are all the same", finite_scores)
def _find_constant(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find a network whose outputs do not depend on its inputs."""
    scores = evidence.scores
    spread = float((scores.max(0) - scores.min(0)).max())
    if len(scores) > 1 and spread <= 1e-6 * max(1.0, float(np.abs(scores).max())):
        yield (
            f"All {len(scores)} tests have the same output, {listed([f'{score:.4g}' for score in scores[0]])}.",
            "Load the trained weights, and check that inputs reach the network's layers.",
        )


@detector("rebuilt", "other weights each time", _from_code)
def _find_rebuilt(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find a person's `build` that returns other weights each time."""
    if fingerprint(load_model(evidence.model.card.name)) != evidence.model.card.fingerprint:
        yield (
            "Two calls of `build` returned networks with different weights.",
            "Load trained weights in `build`, or fix its seed.",
        )


@detector("random", "randomness in evaluation", finite_scores)
def _find_randomness(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find outputs that differ between two passes over the same inputs."""
    again = evidence.raw_of(evidence.inputs[:RAW])
    difference = float(np.abs(again - evidence.raw).max())
    if difference > _DIFFERENT * _size(evidence):
        yield (
            f"Two passes over the same {len(again)} tests differ by up to {difference:.3g} (outputs reach "
            f"{_size(evidence):.3g}): dropout or other randomness is active in evaluation.",
            evidence.remedy(
                "Use nn.Dropout, or F.dropout(x, training=self.training), whose default is to stay active.",
                "Save the network in evaluation mode.",
            ),
        )


@detector("batch", "outputs that depend on the batch", finite_scores)
def _find_batch(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find outputs of inputs that depend on which other inputs are in the batch."""
    if evidence.has_found("random") or len(evidence.inputs) <= _ALONE:
        return
    alone = np.concatenate([evidence.raw_of(evidence.inputs[[number]]) for number in range(_ALONE)])
    differences = np.abs(evidence.raw[:_ALONE] - alone).max(1)
    if differences.max() > _DIFFERENT * _size(evidence):
        most = int(differences.argmax())
        batch = placed(evidence.model, evidence.inputs[:RAW])
        said, advice = mixing(evidence.model, batch[most : most + 1], batch, (most,), least=evidence.traits.least)
        yield (
            f"Outputs of {_ALONE} tests alone and in a batch of {len(evidence.raw)} differ by up to "
            f"{differences.max():.3g} (outputs reach {_size(evidence):.3g}). {said}.",
            evidence.remedy(advice, "Save the network in evaluation mode."),
        )


@detector("batch-norm", "batch normalisation without moments of training")
def _find_untrained_norm(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find batch normalisation whose running moments are those that it has before training."""
    norms = [
        (name, module)
        for name, module in evidence.model.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None
    ]
    fresh = [name for name, module in norms if _fresh(module)]
    if fresh and len(fresh) == len(norms):
        yield (
            f"All {len(norms)} batch normalisations have mean 0 and variance 1, as before training: {listed(fresh)}.",
            "Load the buffers running_mean and running_var with the weights: they are part of the state_dict.",
        )


@detector("gradient", "scores without a gradient to the input", numbers, finite_scores)
def _note_gradient(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Note a network that can be neither attacked nor searched; a frozen part of it may be meant so."""
    model = evidence.model
    try:
        with undisturbed(model):
            watch = Watch(None, evidence.traits, gradients=True)
            check_gradient(model, placed(model, evidence.inputs[:1]), lambda given: run_watched(model, given, watch))
    except UnsupportedOperationError as error:
        evidence.notes.append(str(error))
    yield from ()


@detector("digits", "relevance that loses its digits", finite_scores, varied)
def _note_digits(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Note a deep network in which relevance loses all its digits, by the usual rule with biases either way."""
    one = placed(evidence.model, evidence.inputs[:1])
    try:
        said = [said_lost(evidence.model, one, RelevanceSettings(bias=bias)) for bias in ("absorb", "redistribute")]
    except UnsupportedOperationError:  # told of every layer that is tried
        said = []
    evidence.notes += filter(None, said)
    yield from ()


@detector("dead", "layers that are all zero", finite_scores)
def _find_dead(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find layers that are zero for all tests drawn."""
    dead = [name for name, values in evidence.traces.activations.items() if not values.any()]
    if dead:
        yield (
            f"The output is zero for all {len(evidence.inputs)} tests in {listed(dead)}.",
            "Load the trained weights and check the scale of the inputs: nothing behind such a layer depends on them.",
        )


def _size(evidence: Evidence) -> float:
    return max(float(np.abs(evidence.raw).max()), 1e-6)


def _fresh(module: nn.modules.batchnorm._BatchNorm) -> bool:
    mean, variance = module.running_mean, module.running_var
    if mean is None or variance is None:
        return False
    return not bool(mean.any()) and bool(torch.eq(variance, 1).all())
