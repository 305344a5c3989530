"""The boundary attack: a random walk along the decision boundary, towards the input, through foolbox."""

from __future__ import annotations

from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.perturbation.attacks.decision_based import approach
from idc_core.perturbation.attacks.foolbox_attacks import load_foolbox
from idc_core.perturbation.attacks.registry import Batch, register_attack

_CHECKED = 10
"""Every so many steps foolbox asks once more, to adapt the sizes of steps."""


@register_attack(
    "boundary",
    "Boundary attack",
    "Knows predictions alone: walks at random along the decision boundary, ever closer to the input.",
    "Brendel, Rauber, Bethge, ICLR 2018, algorithm 1",
    Parameter(
        "steps", "Steps", "More steps end closer to the input and take longer; the paper's is 25,000.", 1000, 1, 100000
    ),
    Parameter(
        "around",
        "Step around",
        "First length of a step along the boundary, as a share of the distance.",
        0.2,
        1e-6,
        1.0,
    ),
    Parameter(
        "toward", "Step towards", "First length of a step to the input, as a share of the distance.", 0.1, 1e-6, 1.0
    ),
    takes_goal=False,
    random=True,
    batch_size=64,
    passes=lambda steps, **_: steps + steps // _CHECKED,
)
def _boundary(batch: Batch, steps: int, around: float, toward: float) -> Tensor:
    attack = load_foolbox().attacks.BoundaryAttack(
        steps=steps, spherical_step=around, source_step=toward, update_stats_every_k=_CHECKED
    )
    return approach(batch, attack, steps + steps // _CHECKED)
