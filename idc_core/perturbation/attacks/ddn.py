"""The attack that decouples direction and norm: a small change (L2) in few steps, through foolbox."""

from __future__ import annotations

from torch import Tensor

from idc_core.base.parameters import Parameter
from idc_core.perturbation.attacks.foolbox_attacks import STEPS_HELP, load_foolbox, run_foolbox
from idc_core.perturbation.attacks.registry import Batch, register_attack


@register_attack(
    "ddn",
    "DDN",
    "Follows the gradient on a sphere that shrinks while the network is fooled and grows while it is not.",
    "Rony et al., CVPR 2019, algorithm 1",
    Parameter("steps", "Steps", STEPS_HELP, 100, 1, 10000),
    Parameter("start", "First radius", "Length (L2) of the change after the first step.", 1.0, 0.001, 100.0),
    Parameter("gamma", "Change of the radius", "Share by which the radius changes per step.", 0.05, 0.001, 0.999),
    random=True,  # where a gradient is zero its direction is drawn
    batch_size=64,
    passes=lambda steps, **_: steps,
)
def _ddn(batch: Batch, steps: int, start: float, gamma: float) -> Tensor:
    attack = load_foolbox().attacks.DDNAttack(init_epsilon=start, steps=steps, gamma=gamma)
    return run_foolbox(batch, attack, calls=steps)
