"""Relevance over outputs, and what follows from it number by number, with few ways through memory."""

import torch
from torch import Tensor


def signed(size: float, z: Tensor) -> Tensor:
    """Return `size` with the sign of z, + at zero."""
    return torch.copysign(_stabiliser(size, z), z.detach())


def quotient(relevance: Tensor, z: Tensor, size: float) -> Tensor:
    """Return relevance / (z + size sign z), with sign 0 = +1."""
    share = signed(size, z).add_(z.detach())
    return torch.div(relevance, share, out=share)


def point_by_point(
    inputs: tuple[Tensor, ...], weight: Tensor | None, z: Tensor, relevance: Tensor, size: float
) -> tuple[Tensor, ...]:
    """Return x * weight * relevance / (z + size sign z) for every input x of z's shape."""
    share = quotient(relevance, z, size)
    if weight is not None:
        share.mul_(weight)
    return tuple(x.detach() * share for x in inputs)


def _stabiliser(size: float, z: Tensor) -> Tensor:
    """Return `size` as a number of z's type, at least the smallest that type has."""
    size = max(size, torch.finfo(z.dtype).tiny) if size else size
    return torch.full((), size, dtype=z.dtype, device=z.device)
