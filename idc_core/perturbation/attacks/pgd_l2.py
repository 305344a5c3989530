"""Projected gradient descent within a Euclidean distance, through foolbox."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.perturbation.attacks.foolbox_attacks import STEPS_HELP, load_foolbox, run_foolbox
from idc_core.perturbation.attacks.registry import Batch, register_attack
from idc_core.perturbation.inputs import stream

_DISTANCE = Parameter(
    "epsilon",
    "Epsilon",
    "Largest change of a picture: its Euclidean length (L2), where a value's range is 1.",
    2.0,
    0.001,
    1000.0,
)


@register_attack(
    "pgd-l2",
    "PGD L2",
    "Steps along the gradient from a random start, never further than epsilon (L2) from the input.",
    "Madry et al., ICLR 2018, section 2.1 and appendix E",
    _DISTANCE,
    Parameter("step", "Step size", "Length of a step, as a share of epsilon.", 0.1, 0.0005, 1.0),
    Parameter("steps", "Steps", STEPS_HELP, 40, 1, 1000),
    random=True,
    passes=lambda steps, **_: steps,
)
def _pgd_l2(batch: Batch, epsilon: float, step: float, steps: int) -> Tensor:
    class Seeded(load_foolbox().attacks.L2ProjectedGradientDescentAttack):  # type: ignore[misc]
        """As foolbox's, with the start of each input's own number, even within the ball."""

        def get_random_start(self, x0: Tensor, epsilon: float) -> object:
            return x0 + epsilon * torch.tensor(_random_starts(batch)).to(batch.inputs)

    return run_foolbox(batch, Seeded(rel_stepsize=step, steps=steps), calls=steps, epsilon=epsilon)


def _random_starts(batch: Batch) -> object:
    """Return a point of the unit ball for every input, drawn from its seed and number, float32 (n, C, H, W)."""
    shape = batch.inputs.shape[1:]
    starts = []
    for number in batch.numbers:
        draws = stream(batch.seed, int(number))
        direction = draws.standard_normal(shape)
        starts.append(direction / np.linalg.norm(direction) * draws.uniform() ** (1 / direction.size))
    return np.stack(starts).astype(np.float32)
