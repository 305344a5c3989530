"""Products of two tensors beside those of matrices: bilinear layers, inner and tensor products, interpolation."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.lrp.affine import Affine
from idc_core.lrp.operations import add, affine, depends, operation, scaled
from idc_core.lrp.products import multiply, product
from idc_core.lrp.rules import RelevanceSettings


@operation("bilinear")
def _bilinear(
    settings: RelevanceSettings, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Run a bilinear layer; where both inputs are watched each takes half, as factors of a product do."""
    if depends(input1) and depends(input2):
        wiring = partial(F.bilinear, weight=torch.ones_like(weight))
        z = product(settings, partial(F.bilinear, weight=weight), (0.5, 0.5), input1, input2, wiring=wiring)
        return z if bias is None else add(settings, z, bias)
    if depends(input1):
        watched, matrix = input1, torch.einsum("kij,...j->...ki", weight, input2)
    else:
        watched, matrix = input2, torch.einsum("kij,...i->...kj", weight, input1)

    def weigh(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        z = (x[0].unsqueeze(-2) * w).sum(-1)  # type: ignore[operator]
        return z if b is None else z + b

    return affine(settings, Affine("dense", weigh, matrix, bias, bias), watched)


@operation("inner")
def _inner(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    return _tensordot(settings, input, other, ([-1], [-1]))


@operation("tensordot")
def _tensordot(settings: RelevanceSettings, a: Tensor, b: Tensor, dims: object = 2, out: None = None) -> Tensor:
    """Sum the products over some axes; relevance as of a product of matrices."""
    if depends(a) and depends(b):
        return product(settings, lambda first, other: torch.tensordot(first, other, dims), (0.5, 0.5), a, b)
    if depends(a):
        return affine(settings, Affine("dense", lambda x, w, _: torch.tensordot(x[0], w, dims), b), a)
    return affine(settings, Affine("dense", lambda x, w, _: torch.tensordot(w, x[0], dims), a), b)


@operation("lerp")
def _between(settings: RelevanceSettings, input: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    """Go a part of the way from one value to another; the part may be watched as well, as that of a gate."""
    given = (input, 1 - weight), (end, weight)
    if depends(weight):
        rest = add(settings, weight.new_ones(()), scaled(weight, -1))
        given = (input, rest), (end, weight)
    first, other = (multiply(settings, x, y) if depends(x) or depends(y) else x * y for x, y in given)
    return add(settings, first, other) if depends(first) or depends(other) else first + other
