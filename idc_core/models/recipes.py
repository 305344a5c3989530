"""The named parts a recipe is made of: optimisers, learning rate schedules, augmentations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import Optimizer

Augmentation = Callable[[Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]
"""Takes a batch of inputs and targets and a generator; returns the changed batch."""

OPTIMIZERS: dict[str, Callable[[Iterable[torch.nn.Parameter], float, float], Optimizer]] = {
    "adam": lambda parameters, rate, decay: torch.optim.AdamW(parameters, lr=rate, weight_decay=decay),
}


def constant(step: int, steps: int) -> float:
    """Return the share of the highest learning rate to use at a step: always all of it."""
    return 1.0


def one_cycle(step: int, steps: int) -> float:
    """Return the share of the highest learning rate to use at a step.

    Rises over the first fifth of the steps and falls to zero over the rest, both linearly.
    """
    rise = max(1, steps // 5)
    return (step + 1) / rise if step < rise else (steps - step) / (steps - rise)


SCHEDULES: dict[str, Callable[[int, int], float]] = {"constant": constant, "one-cycle": one_cycle}


def unchanged(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the batch as it is."""
    return inputs, targets


def mirror_shift(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Mirror half of the images (n, C, H, W) left to right and shift each by up to 4 pixels over black."""
    count, _, height, width = inputs.shape
    mirrored = torch.rand(count, generator=generator) < 0.5
    shift = torch.randint(0, 9, (2, count), generator=generator)
    rows = shift[0, :, None] + torch.arange(height)
    columns = shift[1, :, None] + torch.arange(width)
    columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    padded = F.pad(inputs, (4, 4, 4, 4)).permute(0, 2, 3, 1)
    picked = padded[torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2), targets


def mirror_steering(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Mirror half of the camera pictures (n, C, H, W) left to right; their angle changes its sign."""
    mirrored = torch.rand(len(inputs), generator=generator) < 0.5
    pictures = torch.where(mirrored[:, None, None, None], inputs.flip(3), inputs)
    return pictures, torch.where(mirrored, -targets, targets)


def drop_words(inputs: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Replace three in ten words of token ids (n, length) by the unknown word, 1; padding, 0, stays."""
    dropped = (torch.rand(inputs.shape, generator=generator) < 0.3) & (inputs != 0)
    return inputs.masked_fill(dropped, 1), targets


AUGMENTATIONS: dict[str, Augmentation] = {
    "none": unchanged,
    "mirror-shift": mirror_shift,
    "mirror-steering": mirror_steering,
    "drop-words": drop_words,
}
