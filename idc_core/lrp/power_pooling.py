"""Pooling by a power mean, ``(sum x ** p) ** (1 / p)``: each input's share is that of its power."""

import math
from collections.abc import Callable
from typing import Any

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
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        power = float(norm_type)
        if not math.isfinite(power) or power == 0:
            raise UnsupportedOperationError(f"lp_pool{dimensions}d with the norm {norm_type}; use max pooling")
        size: int = math.prod(_ntuple(dimensions)(kernel_size))

        def total(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
            return size * average(x[0], kernel_size, stride, 0, ceil_mode)

        summed = affine(settings, Affine("pooling", total), pass_on(lambda value: value.pow(power), input))
        # PyTorch takes the root of a negative sum of odd powers as it comes, which is not a number; so does this.
        return pass_on(lambda value: (torch.sign(value) * torch.relu(value.abs())).pow(1 / power), summed)

    return handler


for _dimensions in (1, 2, 3):
    OPERATIONS[f"lp_pool{_dimensions}d"] = _power_pool(_dimensions)
