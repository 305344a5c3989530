"""Operations that are linear in what they are given: Fourier transforms, sampling at fixed places, complex numbers.

One handler runs them all. What their weights are is not known, only what they compute: contributions are pulled back
through PyTorch's own gradient, which is that of the weights. A rule that asks for the weights themselves, for their
signs or for which inputs feed an output, has them written out, a matrix for each input of the network.

A complex number is two numbers, its real and its imaginary part, each with relevance of its own: what is linear in
complex numbers is linear in these two. Products of two complex values share as products of activations do.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Kind, pull_back
from idc_core.lrp.calls import Args, replaced, tensors_of
from idc_core.lrp.normalisation import norm
from idc_core.lrp.operations import OPERATIONS, Handler, affine, depends, operation, scaled
from idc_core.lrp.products import product
from idc_core.lrp.rules import RelevanceSettings

_LARGEST = 1 << 27
"""Weights that are written out at most."""


class _Unwritten(Affine):
    """A linear operation on (n, ...) of which only the result is known, and its offset where it has one."""

    weighs = True

    def __init__(
        self, kind: Kind, run: Callable[[Tensor], Tensor], x: Tensor, z: Tensor, offset: Tensor | None, alike: bool
    ) -> None:
        rows = len(x) if x.dim() > 1 and z.dim() > 1 and len(x) == len(z) else 1
        self.__dict__.update(kind=kind, bias=offset, offset=offset, _run=run, _shape=z.shape, _rows=rows)
        self.__dict__.update(function=self._weighed, spread=lambda ones: self._weighed(ones, self._wiring, None))
        self.__dict__["_given"] = x[:1] if alike and rows > 1 else x

    def __call__(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the result as the network computes it."""
        z: Tensor = self.__dict__["_run"](inputs[0])
        return z

    @cached_property
    def weight(self) -> Tensor:
        """The weights, (rows, inputs, outputs); one row where they are the same for all."""
        given: Tensor = self.__dict__["_given"]
        with torch.enable_grad():
            x = given.detach().clone().requires_grad_()
            z = self((x,))
        rows = len(x) if self.__dict__["_rows"] > 1 else 1
        inputs, outputs = x.numel() // rows, z.numel() // rows
        if rows * inputs * outputs > _LARGEST:
            raise UnsupportedOperationError(
                f"Relevance cannot be propagated through an operation of {inputs:,} inputs and {outputs:,} outputs by "
                "a rule that asks for all its weights. Choose z, epsilon or attnlrp, with biases absorbed."
            )
        weight, seed = x.new_empty(rows, inputs, outputs), z.new_zeros(rows, outputs)
        for place in range(outputs):
            seed[:, place] = 1
            weight[..., place] = pull_back(z, (x,), seed.reshape(z.shape), retain=True)[0].reshape(rows, -1)
            seed[:, place] = 0
        return weight

    @cached_property
    def _wiring(self) -> Tensor:
        """Where there are weights, but for what rounding leaves of none."""
        size = self.weight.abs()
        return (size > 1e3 * torch.finfo(size.dtype).eps * size.max()).to(size.dtype)

    def _weighed(self, x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        weight, rows = self.weight if w is None else w, self.__dict__["_rows"]
        z = torch.einsum("ni,nio->no", x[0].reshape(rows, -1), weight.expand(rows, -1, -1))
        z = z.reshape(self.__dict__["_shape"])
        return z if b is None else z + b


def linear_in(
    settings: RelevanceSettings,
    run: Callable[[Tensor], Tensor],
    x: Tensor,
    kind: Kind = "dense",
    offset: Tensor | None = None,
    alike: bool = False,
) -> Tensor:
    """Run what is linear in x, or with an offset affine, and may have or give complex numbers.

    `alike`: it does the same with each row of x, (n, ...).
    """
    takes, gives = x.is_complex(), run(x.detach()).is_complex()

    def real(value: Tensor) -> Tensor:
        z = run(torch.view_as_complex(value) if takes else value)
        return torch.view_as_real(z.resolve_conj()) if gives else z

    given = torch.view_as_real(x.resolve_conj()) if takes else x
    shown = real(given.detach())
    z = affine(settings, _Unwritten(kind, real, given.detach(), shown, offset, alike), given)
    return torch.view_as_complex(z.contiguous()) if gives else z


def _linear(name: str, function: Callable[..., Any], alike: bool = False) -> Handler:
    """Return the handler of an operation that is linear in each tensor that it is given."""

    def handler(settings: RelevanceSettings, *args: Any, **kwargs: Any) -> Tensor:
        watched = [x for x in tensors_of(args, kwargs) if depends(x)]

        def run(*values: Tensor) -> Tensor:
            rest = iter(values)
            given, options = replaced([args, kwargs], lambda x: next(rest) if depends(x) else x)
            return function(*given, **options)  # type: ignore[no-any-return]

        if len(watched) == 1:
            return linear_in(settings, run, watched[0], alike=alike)
        return _product(settings, name, run, watched)

    return handler


def _product(
    settings: RelevanceSettings, name: str, run: Callable[..., Tensor], factors: list[Tensor], wiring: Any = None
) -> Tensor:
    """Run what is linear in each of several values; each takes the same part of the relevance."""
    if settings.bias == "redistribute" and any(x.is_complex() for x in factors):
        raise UnsupportedOperationError(
            f"{name} of two complex quantities that both depend on the input, with biases redistributed; absorb them"
        )
    complex_ = [x.is_complex() for x in factors]
    gives = run(*(x.detach() for x in factors)).is_complex()

    def real(*values: Tensor) -> Tensor:
        z = run(*(torch.view_as_complex(x) if c else x for x, c in zip(values, complex_, strict=True)))
        return torch.view_as_real(z.resolve_conj()) if gives else z

    given = [torch.view_as_real(x.resolve_conj()) if c else x for x, c in zip(factors, complex_, strict=True)]
    z = product(settings, real, [1 / len(given)] * len(given), *given, wiring=wiring)
    return torch.view_as_complex(z.contiguous()) if gives else z


_FOURIER = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn"
for _name in _FOURIER.split():
    for _shown in (_name, f"fft_{_name}"):
        OPERATIONS[_shown] = _linear(_name, getattr(torch.fft, _name), alike=True)
OPERATIONS["stft"], OPERATIONS["istft"] = _linear("stft", torch.stft, True), _linear("istft", torch.istft, True)
for _name in ("cross", "vdot", "trapezoid", "trapz"):
    OPERATIONS[_name] = _linear(_name, getattr(torch, _name))
OPERATIONS["linalg_cross"] = _linear("linalg_cross", torch.linalg.cross)


@operation("grid_sample")
def _grid_sample(
    settings: RelevanceSettings, input: Tensor, grid: Tensor, mode: str = "bilinear", *args: object, **options: object
) -> Tensor:
    """Take numbers between those of a map, at places that are the same for every input."""
    if depends(grid):
        raise UnsupportedOperationError("grid_sample at places that depend on the input")

    def run(x: Tensor) -> Tensor:
        return F.grid_sample(x, grid, mode, *args, **options)  # type: ignore[arg-type]

    if mode == "bicubic":  # some of its weights are negative
        return linear_in(settings, run, input, "pooling")
    return affine(settings, Affine("pooling", lambda x, _, __: run(x[0])), input)


COMPLEX: dict[str, Handler] = {}
"""Operation name -> handler, where a number is complex; beside those that only move numbers."""

PARTS = frozenset(("view_as_complex", "view_as_real", "real", ".real", "imag", ".imag", "resolve_conj"))
"""Operations that see complex numbers as two each, or take one of the two."""

for _names, _function in {
    "mul multiply __mul__ __rmul__ __imul__": torch.mul,
    "matmul __matmul__ mm bmm": torch.matmul,
    "einsum": torch.einsum,
    "sum": torch.sum,
    "mean": torch.mean,
}.items():
    COMPLEX |= dict.fromkeys(_names.split(), _linear(_names.split()[0], cast("Callable[..., Any]", _function)))
for _name in (*_FOURIER.split(), *(f"fft_{name}" for name in _FOURIER.split()), "istft", "stft"):
    COMPLEX[_name] = OPERATIONS[_name]


def _on_parts(name: str) -> Handler:
    """Return the handler of what works on real and imaginary parts alike."""

    def handler(settings: RelevanceSettings, *args: Any, **kwargs: Any) -> Tensor:
        values = [torch.as_tensor(x).to(torch.promote_types(_type(args), torch.complex32)) for x in args]
        shape = torch.broadcast_shapes(*(x.shape for x in values))
        parts = [torch.view_as_real(x.expand(shape).resolve_conj()) for x in values]
        z = OPERATIONS[name](settings, *parts, **kwargs)
        return torch.view_as_complex(z.contiguous())

    return handler


def _type(args: Args) -> torch.dtype:
    return next(x.dtype for x in args if isinstance(x, Tensor) and depends(x))


for _name in ("add", "__add__", "__radd__", "__iadd__", "sub", "subtract", "__sub__", "__isub__", "rsub", "__rsub__"):
    COMPLEX[_name] = _on_parts(_name)
COMPLEX["neg"] = COMPLEX["negative"] = COMPLEX["__neg__"] = _on_parts("neg")


def _conjugate(settings: RelevanceSettings, input: Tensor) -> Tensor:
    parts = torch.view_as_real(input.resolve_conj())
    return torch.view_as_complex(scaled(settings, parts, parts.new_tensor((1.0, -1.0))).contiguous())


def _size(settings: RelevanceSettings, input: Tensor) -> Tensor:
    return norm(settings, torch.view_as_real(input.resolve_conj()), 2, -1)


def _divide(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    if depends(other):
        raise UnsupportedOperationError("div by a complex quantity, or of one, that depends on the input")
    result: Tensor = COMPLEX["mul"](settings, input, 1 / other)
    return result


COMPLEX |= dict.fromkeys(("conj", "conj_physical"), _conjugate)
COMPLEX |= dict.fromkeys(("abs", "absolute"), _size)
COMPLEX |= dict.fromkeys(("div", "divide", "true_divide", "__truediv__", "__itruediv__"), _divide)


@operation("complex")
def _complex(settings: RelevanceSettings, real: Tensor, imag: Tensor) -> Tensor:
    result: Tensor = OPERATIONS["stack"](settings, torch.broadcast_tensors(real, imag), -1)
    return torch.view_as_complex(result.contiguous())
