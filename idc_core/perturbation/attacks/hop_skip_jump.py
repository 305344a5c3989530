"""HopSkipJump: the gradient at the decision boundary, estimated from predictions alone, through foolbox."""

from __future__ import annotations

import math

from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.perturbation.attacks.decision_based import approach
from idc_core.perturbation.attacks.foolbox_attacks import load_foolbox
from idc_core.perturbation.attacks.registry import Batch, register_attack

_MOST = 10_000
"""Predictions at most for one estimate of the gradient, as in the paper."""


def _estimates(steps: int, samples: int) -> int:
    """Return how many predictions all estimates of the gradient take."""
    return sum(min(_MOST, int(samples * math.sqrt(step + 1))) for step in range(steps))


def searches(steps: int, values: int) -> int:
    """Return how many predictions the searches for the boundary take about, in pictures of so many values."""
    return (steps + 1) * (3 + math.ceil(1.5 * math.log2(max(2, values)))) + 4 * steps


@register_attack(
    "hop-skip-jump",
    "HopSkipJump",
    "Knows predictions alone: estimates the gradient at the decision boundary from many of them.",
    "Chen, Jordan, Wainwright, IEEE S&P 2020, algorithm 2",
    Parameter("steps", "Steps", "More steps end closer to the input and take longer; the paper's is 64.", 8, 1, 1000),
    Parameter(
        "samples",
        "Samples",
        "Predictions for the first estimate of the gradient, later ones take more; the paper's is 100.",
        50,
        1,
        _MOST,
    ),
    takes_goal=False,
    random=True,
    batch_size=64,
    passes=lambda steps, samples, values, **_: _estimates(steps, samples) + searches(steps, values),
)
def _hop_skip_jump(batch: Batch, steps: int, samples: int) -> Tensor:
    foolbox = load_foolbox()
    ep = foolbox.models.base.ep

    class PerInput(foolbox.attacks.HopSkipJumpAttack):  # type: ignore[misc,name-defined]
        """Foolbox divides by the length of what belongs to all inputs of a batch together; here each has its own.

        That of directions, which all inputs share, is the root of their number times as long as one's.
        """

        def approximate_gradients(self, is_adversarial: object, x_advs: Tensor, steps: int, delta: Tensor) -> object:
            gradient = super().approximate_gradients(is_adversarial, x_advs, steps, delta * math.sqrt(len(x_advs)))
            length = ep.norms.l2(gradient.flatten(1), axis=-1) + 1e-12
            return gradient / length.reshape((len(gradient), 1, 1, 1))

    attack = PerInput(steps=steps, initial_gradient_eval_steps=samples, max_gradient_eval_steps=_MOST)
    values = batch.inputs[0].numel()
    return approach(batch, attack, _estimates(steps, samples) + searches(steps, values))
