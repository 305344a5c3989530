"""Copies of a network that should answer as it does: a second model for who has only one."""

import copy

import torch
from torch import nn

from idc_core.attribution.session import undisturbed
from idc_core.errors import SettingError


def rounded(model: nn.Module, bits: int = 4) -> nn.Module:
    """Return a copy of a network whose weights have few bits, as on a small device.

    Parameters
    ----------
    model : Module
        Left as it is.
    bits : int
        Of each weight, 2..16.

    Returns
    -------
    Module
        In eval mode. Weights of two axes and more are rounded to the nearest of ``2 ** bits - 1`` levels, symmetric
        about zero and as far as the largest weight of their tensor; biases stay as they are.

    Raises
    ------
    SettingError
        If `bits` is outside 2..16.
    """
    if isinstance(bits, bool) or not 2 <= bits <= 16:
        raise SettingError(f"Expected 2 to 16 bits a weight, got {bits!r}.")
    with undisturbed(model):
        other = copy.deepcopy(model)
    other.requires_grad_(False)
    levels = 2 ** (bits - 1) - 1
    with torch.no_grad():
        for weight in other.parameters():
            if weight.dim() > 1 and weight.is_floating_point():
                unit = weight.abs().max().clamp(min=torch.finfo(weight.dtype).tiny) / levels
                weight.copy_((weight / unit).round() * unit)
    return other.eval()
