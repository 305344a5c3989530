"""One picture changed by hand: turned, moved, noisy, pushed against the network, and painted on.

The browser changes the picture in the same way while a hand moves (`assets/live/picture.js`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from idc_core.datasets.dataset import Task
from idc_core.datasets.editing import paint_over
from idc_core.lrp.interception import Watch
from idc_core.lrp.session import leads_to, run_watched, undisturbed, without_gradient
from idc_core.perturbation.inputs import as_pictures, stream
from idc_core.perturbation.transforms import sampled
from idc_core.tracing.batching import company_of, placed


@dataclass(frozen=True)
class PictureEdits:
    """How a picture is changed; each is 0 where it is not.

    Attributes
    ----------
    degrees : float
        Rotation about the centre, counter-clockwise.
    right, down : float
        Shift in pixels, after the rotation.
    noise : float
        Standard deviation of what is added, in units of a pixel's range.
    epsilon : float
        Step along `loss_direction`, in units of a pixel's range.
    painted : sequence of (place, red, green, blue)
        As `paint_over` takes them; painted last.
    """

    degrees: float = 0.0
    right: float = 0.0
    down: float = 0.0
    noise: float = 0.0
    epsilon: float = 0.0
    painted: Sequence[Sequence[int]] = ()


def change_picture(
    picture: NDArray[np.floating], edits: PictureEdits, noise: NDArray[np.float32], direction: NDArray[np.float32]
) -> NDArray[np.generic]:
    """Return a changed copy of a picture, float (C, H, W) in 0..1.

    `noise` is that of a standard deviation of 1 (`noise_of`), `direction` where the loss grows, both of its shape.
    """
    changed = as_pictures(picture[None])[0]
    if edits.degrees or edits.right or edits.down:
        changed = _moved(changed, edits)
    if edits.noise or edits.epsilon:
        step = np.float32(edits.noise) * noise + np.float32(edits.epsilon) * direction
        changed = np.clip(changed + step, 0, 1)
    return paint_over(changed, edits.painted)


def _moved(picture: NDArray[np.float32], edits: PictureEdits) -> NDArray[np.float32]:
    """Turn and shift a picture, reading every pixel once."""
    height, width = picture.shape[1:]
    cosine, sine = np.cos(np.deg2rad(edits.degrees)), np.sin(np.deg2rad(edits.degrees))
    turned = np.array([[cosine, -sine * height / width], [sine * width / height, cosine]])
    back = turned @ [-2 * edits.right / width, -2 * edits.down / height]
    moved: NDArray[np.float32] = sampled(picture[None], np.column_stack([turned, back]).tolist())[0]
    return moved


def noise_of(shape: tuple[int, ...], number: int) -> NDArray[np.float32]:
    """Return noise of a standard deviation of 1 for the input of that number: the same each time."""
    return stream(0, number).standard_normal(shape).astype(np.float32)


def loss_direction(
    model: torch.nn.Module, picture: NDArray[np.floating], target: float, task: Task
) -> NDArray[np.float32]:
    """Return along which sign of each pixel the loss of one picture, float (C, H, W), grows: float32, -1, 0 or 1.

    The loss is the cross-entropy of the class `target`, or of a regression the squared error from the value `target`.

    Raises
    ------
    UnsupportedOperationError
        If the scores have no gradient to the input.

    Notes
    -----
    I. Goodfellow, J. Shlens, C. Szegedy, "Explaining and harnessing adversarial examples", ICLR 2015: FGSM is a step of
    the size epsilon along this direction.
    """
    watch = Watch(None, company_of(model, picture[None]).traits, gradients=True)
    with undisturbed(model), torch.enable_grad():
        given = placed(model, picture[None]).clone().requires_grad_()
        changed = given * 1  # which leads to the scores
        scores = run_watched(model, changed, watch)
        if not scores.requires_grad or not leads_to(scores, changed):
            raise without_gradient(model)
        if task == "regression":
            loss = (scores[:, 0] - target).square().sum()
        else:
            loss = F.cross_entropy(scores, torch.tensor([int(target)], device=scores.device))
        gradient = torch.autograd.grad(loss, given)[0][0]
    signs: NDArray[np.float32] = gradient.sign().float().cpu().contiguous().numpy()
    return signs
