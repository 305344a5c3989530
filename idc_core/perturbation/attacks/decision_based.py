"""What attacks share that know of a network nothing but its predictions: a start, and what is done where none is found.

They ask no gradients, so that they reveal where a network is robust only because its gradients vanish.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from idc_core.perturbation.attacks.foolbox_attacks import asked_network, load_foolbox, seeded_tensors
from idc_core.perturbation.attacks.registry import Batch

_DIRECTIONS = 50
"""Noisy pictures that are tried as a start."""

_BLENDS = 50
"""Pictures between an input and the noise that are tried, the closest to the input first."""


def approach(batch: Batch, attack: Any, calls: int) -> Tensor:
    """Run one of foolbox's decision-based attacks, which asks the network `calls` times, from blended uniform noise.

    Inputs that are misclassified already, and those for which no noise is, are returned unchanged.
    """
    foolbox, seeded = load_foolbox(), seeded_tensors(batch.seed)
    network = asked_network(batch, calls + _DIRECTIONS + _BLENDS + 3, seeded)
    with torch.no_grad():
        right = network(seeded(batch.inputs)).raw.argmax(1) == batch.labels
        begin = foolbox.attacks.LinearSearchBlendedUniformNoiseAttack(directions=_DIRECTIONS, steps=_BLENDS)
        aim = foolbox.criteria.Misclassification(batch.labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says so where some have no start
            start = begin.run(network, seeded(batch.inputs), aim).raw
        rows = torch.nonzero(right & (network(seeded(start)).raw.argmax(1) != batch.labels))[:, 0]
        result = batch.inputs.clone()
        if len(rows):
            aim = foolbox.criteria.Misclassification(batch.labels[rows])
            seeded.draws.manual_seed(batch.seed)  # afresh: how many draws the start took depends on the batch
            inputs, points = seeded(batch.inputs[rows]), seeded(start[rows])
            result[rows] = attack.run(network, inputs, aim, starting_points=points).raw
    return result
