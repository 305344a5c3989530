"""How much each input contributes to the outputs of an operation: what rules of relevance are made of."""

from functools import reduce

import torch
from torch import Tensor

from idc_core.lrp.affine import Affine, pull_back


class SignedContributions:
    """The contributions of one sign: x+ w+ and x- w- (positive), or x+ w- and x- w+ (negative), with that bias."""

    def __init__(self, affine: Affine, inputs: tuple[Tensor, ...], positive: bool) -> None:
        keep = _positive if positive else _negative
        weight, bias = affine.weight, None if affine.bias is None else keep(affine.bias)
        with torch.enable_grad():
            self._inputs = tuple(x.detach().requires_grad_() for x in inputs)
            upper = tuple(_positive(x) for x in self._inputs)
            lower = tuple(_negative(x) for x in self._inputs)
            if weight is None:
                self._sum = affine.function(upper if positive else lower, None, bias)
            else:
                other = _negative(weight) if positive else _positive(weight)
                self._sum = affine.function(upper, keep(weight), bias) + affine.function(lower, other, None)
        self.total = self._sum.detach()
        self.offset = 0.0 if affine.offset is None else keep(affine.offset)

    def contributions(self, share: Tensor) -> tuple[Tensor, ...]:
        """Return sum_j c_ij share_j for every input i."""
        gradients = pull_back(self._sum, self._inputs, share, retain=True)
        return tuple(x.detach() * g for x, g in zip(self._inputs, gradients, strict=True))


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=0)


def _negative(x: Tensor) -> Tensor:
    return x.clamp(max=0)


def or_zero(x: Tensor | None) -> Tensor | float:
    """Return a tensor; 0 where there is none."""
    return 0.0 if x is None else x


def contributions(affine: Affine, inputs: tuple[Tensor, ...], z: Tensor, share: Tensor) -> tuple[Tensor, ...]:
    """Return inputs times gradients; those of an operation with weights are new numbers, which can be overwritten."""
    gradients, weighted = affine.pull_back(inputs, z, share), affine.weighs
    return tuple(
        g.mul_(x.detach()) if weighted and _dense(g) else x.detach() * g for x, g in zip(inputs, gradients, strict=True)
    )


def _dense(x: Tensor) -> bool:
    """Return whether every number of a tensor has a place of its own."""
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))


def spread_equally(affine: Affine, inputs: tuple[Tensor, ...], amount: Tensor) -> tuple[Tensor, ...]:
    """Divide an amount at every output equally among the inputs that feed it (padding is no input).

    An output that no input feeds, such as a window of padding alone, divides its amount among all inputs of its row.
    """
    with torch.enable_grad():
        ones = tuple(torch.ones_like(x).requires_grad_() for x in inputs)
        fan_in = affine.equally(ones)
    fed = fan_in.detach() != 0
    shares = pull_back(fan_in, ones, torch.where(fed, amount / fan_in.detach(), 0.0))
    if bool(fed.all()):
        return shares
    unfed = torch.where(fed, 0.0, amount).flatten(1).sum(1) / sum(x[0].numel() for x in inputs)
    return tuple(share + unfed.reshape(-1, *[1] * (share.dim() - 1)) for share in shares)


def add(*terms: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the sums of what several terms say of each input."""
    return tuple(reduce(torch.add, parts) for parts in zip(*terms, strict=True))
