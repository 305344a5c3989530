"""A constraint from a person's own file: the picture moves towards its negative."""

from dataclasses import dataclass

import torch

from idc_core.base.parameters import Parameter
from idc_core.generation.constraints import Constraint, constraint


@constraint(
    "negative",
    label="Negative",
    help="A mixture of the picture and its negative.",
    parameters=(Parameter("most", "Largest share of the negative", "1 is the negative.", 0.8, 0.1, 1.0),),
)
@dataclass(frozen=True)
class Negative(Constraint):
    """(1 - s) picture + s negative, s in 0..`most`."""

    most: float = 0.8

    def start(self, seeds):
        return torch.zeros(len(seeds), 1)

    def render(self, seeds, state):
        share = state[:, :, None, None]
        return (1 - share) * seeds + share * (1 - seeds)

    def inside(self, seeds, state):
        return state.clamp(0, self.most)
