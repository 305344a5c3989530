"""FGSM and BIM as the DeepImportance paper's web page sets them: what they make may leave the range of a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.progress import Progress, report
from idc_core.lrp.session import undisturbed
from idc_core.perturbation.attacks.score_model import Scores
from idc_core.tracing.batching import placed

_AT_ONCE = 256
"""Inputs of one batch."""


def unclipped(
    model: nn.Module,
    inputs: NDArray[np.float32],
    targets: NDArray[np.integer],
    *,
    epsilon: float,
    step: float | None = None,
    steps: int = 1,
    on_progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Go up the loss along the sign of its gradient, never further than `epsilon` from the input in any value.

    One step of `epsilon` is FGSM (Goodfellow et al., ICLR 2015), several of `step` are BIM (Kurakin et al., ICLR
    workshop 2017), both without their cut at 0 and 1. `inputs` are float32 (n, C, H, W), `targets` true classes (n,).
    """
    made = np.empty_like(inputs)
    with undisturbed(model):
        scores = Scores(model, inputs)
        for start in range(0, len(inputs), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            given: Any = placed(model, inputs[rows])
            labels = torch.from_numpy(targets[rows].astype(np.int64)).to(given.device)
            found = _climb(scores, given, labels, epsilon, epsilon if step is None else step, steps)
            made[rows] = found.float().cpu().numpy()
            report(on_progress, min(rows.stop, len(inputs)), len(inputs), "inputs attacked without a cut")
    return made


def _climb(scores: Scores, given: Tensor, labels: Tensor, epsilon: float, step: float, steps: int) -> Tensor:
    """Return the inputs after so many steps."""
    moved = given
    for _ in range(steps):
        at = moved.detach().clone().requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(scores(at), labels, reduction="sum")
        gradient = torch.autograd.grad(loss, at)[0]
        moved = given + (at.detach() + step * gradient.sign() - given).clamp(-epsilon, epsilon)
    return moved.detach()
