"""The named parts a recipe is made of: optimisers, learning rate schedules, augmentations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import Optimizer

_Augmentation = Callable[[Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]
"""Takes a batch of inputs and targets and a generator; returns the changed batch."""

OPTIMIZERS: dict[str, Callable[[Iterable[torch.nn.Parameter], float, float], Optimizer]] = {
    "adamw": lambda parameters, rate, decay: torch.optim.AdamW(parameters, lr=rate, weight_decay=decay),
    "adadelta": lambda parameters, rate, decay: torch.optim.Adadelta(parameters, lr=rate, rho=0.95, weight_decay=decay),
    "rmsprop": lambda parameters, rate, decay: torch.optim.RMSprop(parameters, lr=rate, alpha=0.9, weight_decay=decay),
    "sgd": lambda parameters, rate, decay: torch.optim.SGD(parameters, lr=rate, weight_decay=decay),
    "adagrad": lambda parameters, rate, decay: torch.optim.Adagrad(parameters, lr=rate, weight_decay=decay),
}


def _one_cycle(step: int, steps: int) -> float:
    """Return the share of the highest learning rate: up over a fifth of the steps, then down to zero, linearly."""
    rise = max(1, steps // 5)
    return (step + 1) / rise if step < rise else (steps - step) / (steps - rise)


SCHEDULES: dict[str, Callable[[int, int], float]] = {"one-cycle": _one_cycle, "constant": lambda step, steps: 1.0}


def _unchanged(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the batch as it is."""
    return inputs, targets


def _mirror_shift(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Mirror half of the images (n, C, H, W) left to right and shift each by up to 4 pixels over black."""
    mirrored = torch.rand(len(inputs), generator=generator) < 0.5
    shift = torch.randint(0, 9, (2, len(inputs)), generator=generator)
    return _cut(F.pad(inputs, (4, 4, 4, 4)), shift[0], shift[1], mirrored, inputs.shape[2:]), targets


def _mirror_steering(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Mirror half of the camera pictures (n, C, H, W) and shift each; correct their angles (n,) for both.

    Shifts are up to 4 pixels up or down and 8 sideways, border pixels repeated. A mirrored angle changes its sign. A
    road that moves left by a pixel asks for 0.008 radians more to the left, as if the car had drifted to the right.
    """
    count = len(inputs)
    mirrored = torch.rand(count, generator=generator) < 0.5
    down = torch.randint(0, 9, (count,), generator=generator)
    left = torch.randint(0, 17, (count,), generator=generator)
    pictures = _cut(F.pad(inputs, (8, 8, 4, 4), mode="replicate"), down, left, mirrored, inputs.shape[2:])
    angles = targets + 0.008 * (left - 8)
    return pictures, torch.where(mirrored, -angles, angles)


def _cut(padded: Tensor, top: Tensor, left: Tensor, mirrored: Tensor, size: torch.Size) -> Tensor:
    """Cut a window out of each picture (n, C, H, W) at its own corner, mirrored left to right where asked."""
    rows = top[:, None] + torch.arange(size[0])
    columns = left[:, None] + torch.arange(size[1])
    columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    each = torch.arange(len(padded))[:, None, None]
    picked = padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)


def _drop_words(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Replace three in ten words of token ids (n, length) by the unknown word, 1; padding, 0, stays."""
    dropped = (torch.rand(inputs.shape, generator=generator) < 0.3) & (inputs != 0)
    return inputs.masked_fill(dropped, 1), targets


AUGMENTATIONS: dict[str, _Augmentation] = {
    "none": _unchanged,
    "mirror-shift": _mirror_shift,
    "mirror-steering": _mirror_steering,
    "drop-words": _drop_words,
}
