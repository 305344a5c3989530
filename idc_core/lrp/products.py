"""Products of quantities that both depend on the input, bilinear layers and interpolation among them.

A product of activations (attention weights and values, queries and keys, a gate and what it lets through) divides its
relevance equally between its factors, and that of a factor among the factor's elements by their contributions: the
uniform rule of [1]. Two kinds of product are none of activations, and are told by their `lineage`: an activation
function written by hand (``x * sigmoid(x)``), which hands its relevance on unchanged, and a normalisation written by
hand (``x * rsqrt(mean(x ** 2))``), whose factor is held constant, as the deviation of a layer norm is.

Where both factors are 0, neither contributes. With ``bias="redistribute"`` such a product still has relevance, which
earlier operations are to receive: it goes to both factors in the same parts, equally within each.

References
----------
.. [1] R. Achtibat, S. M. V. Hatefi, M. Dreyer, A. Jain, T. Wiegand, S. Lapuschkin, W. Samek, "AttnLRP:
   Attention-aware layer-wise relevance propagation for transformers", ICML 2024: section 3.3.2, equations 13 and 14
   (products of matrices), and appendix A.3 (uniform rule).
"""

from collections.abc import Callable, Sequence
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Keeps, applied, pull_back, taken
from idc_core.lrp.basic_rules import FAINT
from idc_core.lrp.contributions import quotient, signed, spread_equally
from idc_core.lrp.lineage import Way, common_origin
from idc_core.lrp.operations import add, affine, depends, operation, pass_on, scaled
from idc_core.lrp.rules import RelevanceSettings

_Multilinear = Callable[..., Tensor]

_Wiring = _Multilinear | None
"""A product's function with nothing but its wiring, along which relevance without contributions is divided equally."""

_Kept = Keeps[tuple[Sequence[float], bool, _Wiring, tuple[Tensor, ...], Tensor]]


class _ProductRelevance(torch.autograd.Function):
    """A function linear in each input, of which each input takes a given part of the relevance."""

    @staticmethod
    def forward(
        ctx: _Kept, function: _Multilinear, parts: Sequence[float], as_gradient: bool, wiring: _Wiring, *inputs: Tensor
    ) -> Tensor:
        """Run the product once, keeping its own small graph for the way back."""
        with torch.enable_grad():
            leaves = tuple(x.detach().requires_grad_() for x in inputs)
            z = function(*leaves)
        ctx.kept = parts, as_gradient, wiring, leaves, z
        return z.detach()

    @staticmethod
    def backward(ctx: _Kept, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Share the relevance of z among the inputs by their contributions, each its part of the whole."""
        parts, as_gradient, wiring, leaves, z = taken(ctx)
        if as_gradient:
            gradients = pull_back(z, leaves, grads[0])
            return (None,) * 4 + tuple(gradient * part for part, gradient in zip(parts, gradients, strict=True))
        share = quotient(grads[0], z.detach(), FAINT)
        lost = None if wiring is None else _without_contributions(share, z.detach(), grads[0])
        gradients = pull_back(z, leaves, share)
        shares = [
            torch.mul(x.detach(), gradient).mul_(part)
            for part, x, gradient in zip(parts, leaves, gradients, strict=True)
        ]
        if wiring is not None and lost is not None:
            spread = spread_equally(Affine("dense", wiring, spread=wiring), leaves, lost)
            shares = [x.add_(more, alpha=part) for part, x, more in zip(parts, shares, spread, strict=True)]
        return (None, None, None, None, *shares)


def _without_contributions(share: Tensor, z: Tensor, relevance: Tensor) -> Tensor | None:
    """Take the relevance of what is 0 out of the shares and return it with what the stabiliser keeps; None for none."""
    if not bool((z.abs() < FAINT * 1e12).any()):
        return None
    lost = torch.where(z == 0, relevance, share * signed(FAINT, z))
    share.masked_fill_(z == 0, 0.0)
    return lost


def product(
    settings: RelevanceSettings,
    function: _Multilinear,
    parts: Sequence[float],
    *inputs: Tensor,
    wiring: _Multilinear | None = None,
) -> Tensor:
    """Run a function that is linear in each of its inputs, which take these parts of the relevance.

    A product that is 0 has no contributions. Where biases are redistributed, so is its relevance, which is one: each
    input divides its part equally among its elements that `wiring`, default `function`, leads there.
    """
    wired = function if wiring is None else wiring
    spread = None if settings.bias == "absorb" else lambda ones, *_: wired(*ones)
    return applied(_ProductRelevance, function, tuple(parts), settings.as_gradient, spread, *inputs)


def _halves(settings: RelevanceSettings, function: _Multilinear, *factors: Tensor) -> Tensor:
    return product(settings, function, (0.5, 0.5), *factors)


@operation("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def _multiply(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    """Multiply element by element: by a constant, two activations, or a value by what was computed from it."""
    if not (depends(input) and depends(other)):
        return scaled(settings, input, other) if depends(input) else scaled(settings, other, input)
    common = common_origin(input, other)
    if common is not None:
        origin, way, other_way = common
        if way is Way.ELEMENTWISE and other_way is Way.ELEMENTWISE:
            return pass_on(settings, lambda _: input.detach() * other.detach(), origin)
        if other_way is Way.REDUCED and _repeats(other, input):
            return scaled(settings, input, other.detach())
        if way is Way.REDUCED and _repeats(input, other):
            return scaled(settings, other, input.detach())
    return _halves(settings, torch.mul, input, other)


def _repeats(factor: Tensor, value: Tensor) -> bool:
    """Return whether a factor is the same along an axis of the value, or was before it was expanded."""
    shape = torch.broadcast_shapes(factor.shape, value.shape)
    if factor.numel() < value.numel() and tuple(shape) == tuple(value.shape):
        return True
    return any(stride == 0 and size > 1 for stride, size in zip(factor.stride(), factor.shape, strict=True))


@operation("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def _divide(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    """Divide by a constant, or by a quantity that is held constant as that of a normalisation."""
    if not depends(other):
        return scaled(settings, input, 1 / other)
    if not depends(input):
        shape = torch.broadcast_shapes(other.shape, torch.as_tensor(input).shape)
        return pass_on(settings, lambda value: input / value, other.expand(shape))
    common = common_origin(input, other)
    if common is not None and common[1] is Way.ELEMENTWISE and common[2] is Way.ELEMENTWISE:
        return pass_on(settings, lambda _: input.detach() / other.detach(), common[0])
    return scaled(settings, input, 1 / other.detach())


@operation("__rtruediv__", "__rdiv__")
def _divide_from(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    return _divide(settings, other, input)


@operation("matmul", "__matmul__", "mm", "bmm", "mv", "linalg_matmul")
def matmul(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    """Multiply two matrices, one of which may be a constant."""
    if depends(input) and depends(other):
        return _halves(settings, torch.matmul, input, other)
    if depends(input):
        return affine(settings, Affine("dense", lambda x, w, _: torch.matmul(x[0], w), other), input)  # type: ignore[arg-type]
    return affine(settings, Affine("dense", lambda x, w, _: torch.matmul(w, x[0]), input), other)  # type: ignore[arg-type]


@operation("_grouped_mm", "grouped_mm")
def _grouped_matmul(
    settings: RelevanceSettings, input: Tensor, mat2: Tensor, *rest: object, **options: object
) -> Tensor:
    """Multiply groups of rows, such as the tokens of each expert, by a matrix each."""
    if depends(mat2):
        raise UnsupportedOperationError("grouped_mm of two quantities that both depend on the input")
    function: _Multilinear = getattr(F, "grouped_mm", torch._grouped_mm)
    return affine(settings, Affine("dense", lambda x, w, _: function(x[0], w, *rest, **options), mat2), input)


@operation("__rmatmul__")
def _rmatmul(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    return matmul(settings, other, input)


@operation("baddbmm")
def _add_products(
    settings: RelevanceSettings, input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return _add_product(settings, input, batch1, batch2, beta=beta, alpha=alpha)


@operation("addmm")
def _add_product(
    settings: RelevanceSettings, input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    plain = beta == 1 and alpha == 1 and mat1.dim() == 2
    if plain and depends(mat1) and not depends(mat2) and not depends(input):
        return affine(settings, Affine("dense", _product_and_bias, mat2, input, input), mat1)
    summed = (
        scaled(settings, matmul(settings, mat1, mat2), alpha)
        if depends(mat1) or depends(mat2)
        else alpha * (mat1 @ mat2)
    )
    return summed if beta == 0 else add(settings, scaled(settings, input, beta), summed)


def _product_and_bias(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    z = torch.matmul(x[0], w)  # type: ignore[arg-type]
    return z if b is None else z + b


@operation("addcmul")
def _addcmul(
    settings: RelevanceSettings, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1
) -> Tensor:
    return add(settings, input, _either(_multiply, settings, tensor1, tensor2), alpha=value)


@operation("addcdiv")
def _addcdiv(
    settings: RelevanceSettings, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1
) -> Tensor:
    return add(settings, input, _either(_divide, settings, tensor1, tensor2), alpha=value)


def _either(
    combine: Callable[[RelevanceSettings, Tensor, Tensor], Tensor],
    settings: RelevanceSettings,
    one: Tensor,
    other: Tensor,
) -> Tensor:
    """Combine by a handler, which needs a watched value, or two constants as they are."""
    if depends(one) or depends(other):
        return combine(settings, one, other)
    return one * other if combine is _multiply else one / other


@operation("einsum")
def _einsum(settings: RelevanceSettings, equation: str, *operands: Any) -> Tensor:
    if not isinstance(equation, str):  # einsum(a, [0, 1], b, [1, 2], [0, 2])
        equation, operands = _written(equation, *operands)
    tensors = tuple(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if len(tensors) == 1:
        return affine(settings, Affine("pooling", lambda x, _, __: torch.einsum(equation, x[0])), tensors[0])
    if len(tensors) > 2:
        return _einsum_of_many(settings, equation, tensors)
    first, other = tensors
    if depends(first) and depends(other):
        return _halves(settings, lambda a, b: torch.einsum(equation, a, b), first, other)
    if depends(first):
        return affine(settings, Affine("dense", lambda x, w, _: torch.einsum(equation, x[0], w), other), first)
    return affine(settings, Affine("dense", lambda x, w, _: torch.einsum(equation, w, x[0]), first), other)


def _written(*given: Any) -> tuple[str, tuple[Tensor, ...]]:
    """Return the equation of tensors, each with the numbers of its axes behind it, and the tensors."""

    def letters(axes: Sequence[object]) -> str:
        return "".join("..." if axis is Ellipsis else (ascii_lowercase + ascii_uppercase)[int(axis)] for axis in axes)  # type: ignore[call-overload]

    end = f"->{letters(given[-1])}" if len(given) % 2 else ""
    pairs = list(zip(given[::2], given[1::2], strict=False))
    return ",".join(letters(axes) for _, axes in pairs) + end, tuple(tensor for tensor, _ in pairs)


def _einsum_of_many(settings: RelevanceSettings, equation: str, tensors: tuple[Tensor, ...]) -> Tensor:
    """Run the sum of products of several tensors: with one watched it is linear, else each watched takes the same."""

    def of_watched(*values: Tensor, ones: bool = False) -> Tensor:
        rest = iter(values)
        return torch.einsum(
            equation, *(next(rest) if depends(x) else torch.ones_like(x) if ones else x for x in tensors)
        )

    watched = [x for x in tensors if depends(x)]
    if len(watched) > 1:
        parts = [1 / len(watched)] * len(watched)
        return product(settings, of_watched, parts, *watched, wiring=partial(of_watched, ones=True))
    # The constants are a weight: of one that is put in front of the watched one, ones stand for its own place.
    place = next(number for number, x in enumerate(tensors) if depends(x))
    terms, _, end = equation.replace(" ", "").partition("->")
    names = terms.split(",")
    if "..." in terms or not end:
        raise UnsupportedOperationError(
            "einsum of more than two tensors whose equation has an ellipsis or no result; write out all axes"
        )
    others = [x for number, x in enumerate(tensors) if number != place]
    kept = "".join(dict.fromkeys(axis for number, name in enumerate(names) if number != place for axis in name
                                 if axis in end or axis in names[place]))  # fmt: skip
    weight = torch.einsum(f"{','.join(name for number, name in enumerate(names) if number != place)}->{kept}", *others)
    return _einsum(settings, f"{names[place]},{kept}->{end}", tensors[place], weight)


@operation("multi_dot", "linalg_multi_dot", "chain_matmul")
def _chain(settings: RelevanceSettings, *tensors: Any) -> Tensor:
    """Multiply matrices one after the other; constants beside each other are one matrix."""
    given = list(tensors[0]) if isinstance(tensors[0], list | tuple) else list(tensors)
    for place in range(len(given) - 2, -1, -1):
        if not depends(given[place]) and not depends(given[place + 1]):
            given[place : place + 2] = [given[place] @ given[place + 1]]
    first, *rest = given
    for other in rest:
        first = matmul(settings, first, other)
    return cast(Tensor, first)


@operation("kron")
def _kronecker(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    """Multiply each number of one tensor by each of another."""
    axes = max(input.dim(), other.dim())
    one, two = (x.reshape(*[1] * (axes - x.dim()), *x.shape) for x in (input, other))
    sizes = [a * b for a, b in zip(one.shape, two.shape, strict=True)]
    one = one.reshape([n for size in one.shape for n in (size, 1)])
    two = two.reshape([n for size in two.shape for n in (1, size)])
    return _multiply(settings, one, two).reshape(sizes)


@operation("outer", "ger")
def _outer(settings: RelevanceSettings, input: Tensor, vec2: Tensor) -> Tensor:
    return _multiply(settings, input[:, None], vec2[None, :])


@operation("dot", "vecdot", "linalg_vecdot")
def _dot(settings: RelevanceSettings, x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    if depends(x) and depends(y):
        return _halves(settings, lambda a, b: (a * b).sum(dim), x, y)
    watched, constant = (x, y) if depends(x) else (y, x)
    shape = torch.broadcast_shapes(x.shape, y.shape)

    def weigh(v: tuple[Tensor, ...], w: Tensor | None, _: Tensor | None) -> Tensor:
        return (v[0] * cast(Tensor, w)).sum(dim)

    return affine(settings, Affine("dense", weigh, constant.expand(shape)), watched.expand(shape))


@operation("cosine_similarity")
def _cosine(settings: RelevanceSettings, x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Multiply two vectors of length 1; lengths are held constant, as where a normalisation is written out."""
    shape = torch.broadcast_shapes(x1.shape, x2.shape)
    one, other = (
        scaled(settings, x, 1 / torch.linalg.vector_norm(x.detach(), dim=dim, keepdim=True).clamp_min(eps))
        for x in (x1.expand(shape), x2.expand(shape))
    )
    return _dot(settings, one, other, dim=dim)


@operation("prod")
def _product_of_all(
    settings: RelevanceSettings, input: Tensor, dim: int | None = None, keepdim: bool = False, **options: Any
) -> Tensor:
    """Multiply all numbers, or those along an axis; each takes the same part."""
    count = input.numel() if dim is None else input.shape[dim]

    def run(x: Tensor) -> Tensor:
        return x.prod(**options) if dim is None else x.prod(dim, keepdim, **options)

    return product(settings, run, [1 / max(1, count)], input)


@operation("glu")
def _glu(settings: RelevanceSettings, input: Tensor, dim: int = -1) -> Tensor:
    value, gate = input.chunk(2, dim)
    return _multiply(settings, value, pass_on(settings, torch.sigmoid, gate))


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
        rest = add(settings, weight.new_ones(()), scaled(settings, weight, -1))
        given = (input, rest), (end, weight)
    first, other = (_multiply(settings, x, y) if depends(x) or depends(y) else x * y for x, y in given)
    return add(settings, first, other) if depends(first) or depends(other) else first + other
