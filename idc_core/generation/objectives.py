"""What a search asks of the models' scores: the part of the objective that one model adds."""

from collections.abc import Callable

import torch
from torch import Tensor

from idc_core.registry import Registry

SAFE = 2.0
"""By how much the score of the class must lead in a model that keeps it; beyond, nothing more is asked of it."""

Part = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]
"""From scores (n, classes), the class of each seed (n,), and how many other models there are: what is raised where the
model is to keep the class, and what is lowered where it is to lose it, (n,) each."""


def scores_alone(scores: Tensor, classes: Tensor, others: int) -> tuple[Tensor, Tensor]:
    """Return the class's score twice: the paper's objective (equation 2)."""
    own = scores.gather(1, classes[:, None])[:, 0]
    return own, own


def margins(scores: Tensor, classes: Tensor, others: int) -> tuple[Tensor, Tensor]:
    """Return by how much the class's score leads the best other score, up to `SAFE` where the class is to be kept.

    The models that keep the class share one vote, so that ten of them do not outvote the one that is to lose it. A
    regression has no other score; there the answer itself stands for the lead.
    """
    own = scores.gather(1, classes[:, None])[:, 0]
    if scores.shape[1] == 1:
        return own / others, own
    rest = scores.scatter(1, classes[:, None], -torch.inf).amax(1)
    lead = own - rest
    return lead.clamp(max=SAFE) / others, lead


OBJECTIVES: Registry[Part] = Registry("objective", {"margin": margins, "scores": scores_alone})
"""Objectives by name."""
