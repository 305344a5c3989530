"""Pooling by a power mean, ``z = (sum x ** p) ** (1 / p)``: each input's share is that of its power.

To the rules it is the sum of ``x ** p z ** (1 - p)``, which is z, so that a stabiliser damps it as it damps other sums.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.utils import _ntuple

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine
from idc_core.lrp.operations import OPERATIONS, Handler, affine, pass_on
from idc_core.lrp.rules import RelevanceSettings


def _power_pool(dimensions: int) -> Handler:
    average: Callable[..., Tensor] = getattr(F, f"avg_pool{dimensions}d")

    def handler(
        settings: RelevanceSettings,
        input: Tensor,
        norm_type: float,
        kernel_size: object,
        stride: object = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        power = float(norm_type)
        if not math.isfinite(power) or power == 0:
            raise UnsupportedOperationError(f"lp_pool{dimensions}d with the norm {norm_type}; use max pooling")
        size: int = math.prod(_ntuple(dimensions)(kernel_size))

        def total(x: Tensor) -> Tensor:
            return size * average(x, kernel_size, stride, 0, ceil_mode)

        powers = pass_on(lambda value: value.pow(power), input)
        sums = total(powers.detach())
        # PyTorch takes the root of a negative sum of odd powers as it comes, which is not a number; so does this.
        roots = (torch.sign(sums) * torch.relu(sums.abs())).pow(1 / power)
        scale = torch.where(sums == 0, 1.0, roots / sums)
        return affine(settings, Affine("pooling", lambda x, _, __: total(x[0]) * scale), powers)

    return handler


for _dimensions in (1, 2, 3):
    OPERATIONS[f"lp_pool{_dimensions}d"] = _power_pool(_dimensions)
