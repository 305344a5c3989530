"""What rules of relevance are made of: quotients that are stabilised, equal shares, sums of shares."""

from collections.abc import Callable
from functools import cache, lru_cache, reduce

import torch
from torch import Tensor

from idc_core.lrp.affine import Affine, pull_back


def signed(size: float, z: Tensor) -> Tensor:
    """Return `size`, at least the smallest number of z's type unless it is 0, with the sign of z, + at zero."""
    return torch.copysign(_number(_least(size, z), z.dtype, z.device), z.detach())


@lru_cache(64)
def _number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a number as a tensor, which nobody writes into."""
    return torch.full((), value, dtype=dtype, device=device)


def _least(size: float, z: Tensor) -> float:
    """Return a stabiliser that is no zero in z's type."""
    return max(size, torch.finfo(z.dtype).tiny) if size else size


def quotient(relevance: Tensor, z: Tensor, size: float, factor: Tensor | None = None) -> Tensor:
    """Return relevance / (z + size sign z), with sign 0 = +1, times a factor that broadcasts against z."""
    z = z.detach()
    if z.is_cuda and relevance.dtype == z.dtype and z.dtype in (torch.float32, torch.float64):
        return _in_one_pass(factor is not None)(relevance, z, *(() if factor is None else (factor,)), s=_least(size, z))
    share = signed(size, z).add_(z)
    torch.div(relevance, share, out=share)
    return share if factor is None else share.mul_(factor)


@cache
def _in_one_pass(with_factor: bool) -> Callable[..., Tensor]:
    """Return the quotient as one kernel of a graphics card, which torch compiles at its first use."""
    given, times = (", T f", " * f") if with_factor else ("", "")
    code = (
        f"template <typename T> T quotient(T r, T z{given}, T s) {{ return r / (z + (signbit(z) ? -s : s)){times}; }}"
    )
    made: Callable[..., Tensor] = torch.cuda.jiterator._create_jit_fn(code, s=0.0)
    return made


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
