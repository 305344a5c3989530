"""Networks much like another one, which it can be compared with."""

import copy

import torch
from torch import nn

from idc_core.base.ranges import BITS
from idc_core.lrp.session import undisturbed


def rounded(model: nn.Module, bits: int = 4) -> nn.Module:
    """Return a copy of a network, in eval mode, whose weights have few bits (2..16), as on a small device.

    Weights of two axes and more are rounded to the nearest of ``2 ** bits - 1`` levels, symmetric about zero and as far
    as the largest weight of their tensor; biases stay as they are.
    """
    BITS.check(bits)
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
