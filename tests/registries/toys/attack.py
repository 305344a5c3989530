"""A toy attack: one step against the true class, along the sign of the gradient."""

import torch

from idc_core.base.parameters import Parameter
from idc_core.perturbation.attacks.registry import Batch, register_attack


@register_attack(
    "toy-attack",
    "Toy attack",
    "One step that lowers the score of the true class.",
    "Nobody, 2026",
    Parameter("size", "Size of the step", "How far each value moves, in parts of its range.", 0.4, 0.01, 1.0),
    takes_goal=False,
)
def toy(batch: Batch, size: float) -> torch.Tensor:
    batch.tick(0.0)
    point = batch.inputs.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(batch.scores(point), batch.labels, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, point)
    return (batch.inputs + size * gradient.sign()).clamp(0, 1)
