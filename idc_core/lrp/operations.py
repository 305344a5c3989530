"""How relevance passes through each operation a network may use.

Operations are met by name while the network runs (`interception`), so it does not matter whether a network writes
``nn.ReLU()``, ``F.relu(x)`` or ``x.relu_()``. A handler runs the operation on tensors that depend on the watched
layers, in a form whose backward pass carries relevance. An operation that no handler knows is refused by name.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, AffineRelevance, PassRelevance, conv2d
from idc_core.lrp.rules import RelevanceSettings

Handler = Callable[..., Any]

OPERATIONS: dict[str, Handler] = {}
"""Operation name -> handler(settings, *args, **kwargs)."""

FASTER: dict[str, Handler] = {}
"""Operation name -> what runs in its place where nothing is watched: the same numbers, faster, or from any layout."""

SOFTMAX = frozenset(("softmax", "log_softmax"))
"""What turns scores into probabilities; relevance starts before it."""

_ACTIVATIONS = """
relu relu6 leaky_relu prelu rrelu elu selu celu gelu silu mish softplus softsign tanh tanhshrink softshrink hardshrink
sigmoid log_sigmoid hardtanh hardswish hardsigmoid threshold _threshold clamp clamp_min clamp_max clip
"""
ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    name: getattr(torch, name, None) or getattr(F, name.removeprefix("_").replace("log_sigmoid", "logsigmoid"))
    for name in _ACTIVATIONS.split()
}
"""Element-wise non-linearities; each hands its relevance on unchanged."""

_STRUCTURAL = """
reshape reshape_as flatten unflatten ravel permute transpose t swapaxes swapdims movedim moveaxis squeeze unsqueeze
contiguous clone split split_with_sizes chunk tensor_split unbind __getitem__ select narrow index_select gather expand
expand_as repeat tile flip roll to type type_as float double pixel_shuffle pixel_unshuffle channel_shuffle positive
broadcast_to repeat_interleave .T .mT .H .mH
"""
STRUCTURAL = frozenset(_STRUCTURAL.split())
"""Operations that only move, copy or select numbers: the plain gradient carries relevance unchanged."""


def operation(*names: str) -> Callable[[Handler], Handler]:
    """Enter a handler under the names that PyTorch gives its operation."""

    def enter(handler: Handler) -> Handler:
        OPERATIONS.update(dict.fromkeys(names, handler))
        return handler

    return enter


def affine(settings: RelevanceSettings, operation: Affine, *inputs: Tensor) -> Tensor:
    """Run an affine operation whose relevance follows the rule for its kind."""
    for parameter in (operation.weight, operation.bias):
        if parameter is not None and parameter.requires_grad:
            raise UnsupportedOperationError(
                f"a {operation.kind} operation whose weights depend on the input; relevance needs fixed weights"
            )
    result: Tensor = AffineRelevance.apply(operation, settings.rule_for(operation.kind), *inputs)  # type: ignore[no-untyped-call]
    return result


def pass_on(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Run an element-wise function whose relevance passes unchanged."""
    result: Tensor = PassRelevance.apply(function, x)  # type: ignore[no-untyped-call]
    return result


def depends(x: object) -> bool:
    """Return whether a value depends on a watched layer."""
    return isinstance(x, Tensor) and x.requires_grad


def _refuse_product(name: str, *factors: object) -> None:
    if sum(map(depends, factors)) > 1:
        raise UnsupportedOperationError(f"{name} of two quantities that both depend on the input")


@operation("linear")
def linear(settings: RelevanceSettings, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Run a dense operation."""
    return affine(settings, Affine("dense", _weigh, weight, bias, bias), input)


def _weigh(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return F.linear(x[0], w, b)  # type: ignore[arg-type]


def _convolution(convolve: Callable[..., Tensor], dimensions: int) -> Handler:
    def handler(
        settings: RelevanceSettings,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *rest: Any,
        **options: Any,
    ) -> Tensor:
        offset = None if bias is None else bias.reshape(-1, *[1] * dimensions)

        def function(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
            return convolve(x[0], w, b, *rest, **options)

        return affine(settings, Affine("convolution", function, weight, bias, offset), input)

    return handler


for _dimensions in (1, 2, 3):
    for _name in (f"conv{_dimensions}d", f"conv_transpose{_dimensions}d"):
        OPERATIONS[_name] = _convolution(conv2d if _name == "conv2d" else getattr(torch, _name), _dimensions)


@operation("matmul", "__matmul__", "mm", "bmm", "mv")
def _matmul(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    _refuse_product("matmul", input, other)
    if depends(input):
        return affine(settings, Affine("dense", lambda x, w, _: torch.matmul(x[0], w), other), input)  # type: ignore[arg-type]
    return affine(settings, Affine("dense", lambda x, w, _: torch.matmul(w, x[0]), input), other)  # type: ignore[arg-type]


@operation("__rmatmul__")
def _rmatmul(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Any:
    return _matmul(settings, other, input)


@operation("addmm")
def _addmm(settings: RelevanceSettings, input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    if depends(input) or depends(mat2):
        raise UnsupportedOperationError("addmm whose bias or second matrix depends on the input")
    return affine(settings, Affine("dense", _add_product, mat2, input, input), mat1)


def _add_product(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    product = torch.matmul(x[0], w)  # type: ignore[arg-type]
    return product if b is None else product + b


@operation("add", "__add__", "__radd__", "__iadd__")
def add(settings: RelevanceSettings, input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """Run a sum, residual connections among them; each summand takes its share, a constant is a bias."""
    other = scaled(other, alpha)
    if depends(input) and depends(other):
        shape = torch.broadcast_shapes(input.shape, other.shape)
        return affine(settings, Affine("sum", _total), input.expand(shape), other.expand(shape))
    (x, constant) = (input, other) if depends(input) else (other, input)
    constant = torch.as_tensor(constant, dtype=x.dtype, device=x.device)
    x = x.expand(torch.broadcast_shapes(x.shape, constant.shape))
    return affine(settings, Affine("sum", _plus_bias, None, constant, constant), x)


def _total(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] + x[1]


def _plus_bias(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] + 0 if b is None else x[0] + b


def scaled(x: Any, factor: Any) -> Any:
    """Multiply by a factor that does not depend on the input; relevance passes unchanged."""
    if isinstance(factor, int | float) and factor == 1:
        return x
    if not depends(x):
        return x * factor
    if isinstance(factor, Tensor):
        x = x.expand(torch.broadcast_shapes(x.shape, factor.shape))
    return pass_on(lambda value: value * factor, x)


@operation("sub", "subtract", "__sub__", "__isub__")
def _sub(settings: RelevanceSettings, input: Any, other: Any, *, alpha: float = 1) -> Any:
    return add(settings, input, scaled(other, -alpha))


@operation("rsub", "__rsub__")
def _rsub(settings: RelevanceSettings, input: Any, other: Any) -> Any:
    return _sub(settings, other, input)


@operation("neg", "negative", "__neg__")
def _neg(settings: RelevanceSettings, input: Tensor) -> Tensor:
    return pass_on(torch.neg, input)


@operation("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def _mul(settings: RelevanceSettings, input: Any, other: Any) -> Any:
    _refuse_product("mul", input, other)
    return scaled(input, other) if depends(input) else scaled(other, input)


@operation("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def _div(settings: RelevanceSettings, input: Any, other: Any) -> Any:
    if depends(other):
        raise UnsupportedOperationError("div by a quantity that depends on the input")
    return scaled(input, 1 / other)


@operation("mean")
def _mean(settings: RelevanceSettings, input: Tensor, *dim: Any, **options: Any) -> Tensor:
    return affine(settings, Affine("pooling", lambda v, _, __: v[0].mean(*dim, **options)), input)


@operation("sum")
def _sum(settings: RelevanceSettings, input: Tensor, *dim: Any, **options: Any) -> Tensor:
    return affine(settings, Affine("pooling", lambda v, _, __: v[0].sum(*dim, **options)), input)


@operation(
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout"
)
def _dropout(
    settings: RelevanceSettings, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    if training:
        raise UnsupportedOperationError("dropout that stays active in evaluation, so that no two passes agree")
    return input


def _view(input: Tensor, *shape: Any, **options: Any) -> Tensor:
    """Return a view, or a copy where there is none: images run with the channels last in memory."""
    try:
        return input.view(*shape, **options)
    except RuntimeError:
        return input.reshape(*shape)


@operation("view")
def _followed_view(settings: RelevanceSettings, input: Tensor, *shape: Any, **options: Any) -> Tensor:
    return _view(input, *shape, **options)


@operation("view_as")
def _followed_view_as(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    return input.reshape(other.shape)


FASTER["view"] = _view
FASTER["view_as"] = Tensor.reshape_as
