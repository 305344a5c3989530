"""How relevance passes through each operation a network may use.

Operations are met by name while the network runs (`interception`), so it does not matter whether a network writes
``nn.ReLU()``, ``F.relu(x)`` or ``x.relu_()``. A handler runs the operation on tensors that depend on the watched
layers, in a form whose backward pass carries relevance. An operation that no handler knows is refused by name.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.attribution.affine import Affine, AffineRelevance, Kind, PassRelevance
from idc_core.attribution.pooling import WinnerRelevance, adaptive_windows, max_pool
from idc_core.attribution.rules import RelevanceSettings
from idc_core.errors import UnsupportedOperationError

Handler = Callable[..., Any]

OPERATIONS: dict[str, Handler] = {}
"""Operation name -> handler(settings, *args, **kwargs)."""

FASTER: dict[str, Handler] = {}
"""Operation name -> the same operation, run faster than PyTorch does; used where nothing is watched."""

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    name: getattr(torch, name, None) or getattr(F, name)
    for name in (
        "relu", "relu6", "leaky_relu", "prelu", "rrelu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus",
        "softsign", "tanh", "tanhshrink", "sigmoid", "logsigmoid", "hardtanh", "hardswish", "hardsigmoid",
        "threshold", "clamp", "clamp_min", "clamp_max",
    )
}  # fmt: skip
"""Element-wise non-linearities; each hands its relevance on unchanged."""

STRUCTURAL = frozenset(
    (
        "reshape", "view", "view_as", "reshape_as", "flatten", "unflatten", "ravel", "permute", "transpose", "t",
        "swapaxes", "swapdims", "movedim", "moveaxis", "squeeze", "unsqueeze", "contiguous", "clone", "cat",
        "concat", "concatenate", "stack", "hstack", "vstack", "split", "split_with_sizes", "chunk", "tensor_split",
        "unbind", "__getitem__", "select", "narrow", "index_select", "gather", "expand", "expand_as", "repeat",
        "tile", "flip", "roll", "to", "type", "type_as", "float", "double", "pixel_shuffle", "pixel_unshuffle",
        "channel_shuffle", "masked_fill", "__get__", "positive",
    )
)  # fmt: skip
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


# --- weights -----------------------------------------------------------------------------------------------------


@operation("linear")
def _linear(settings: RelevanceSettings, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return affine(settings, Affine("dense", lambda x, w, b: F.linear(x[0], w, b), weight, bias, bias), input)  # type: ignore[arg-type]


def _convolution(name: str, dimensions: int) -> Handler:
    convolve = getattr(torch, name)

    def handler(
        settings: RelevanceSettings, input: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any, **options: Any
    ) -> Tensor:
        offset = None if bias is None else bias.reshape(-1, *[1] * dimensions)

        def function(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
            result: Tensor = convolve(x[0], w, b, *rest, **options)
            return result

        return affine(settings, Affine("convolution", function, weight, bias, offset), input)

    return handler


for _dimensions in (1, 2, 3):
    for _name in (f"conv{_dimensions}d", f"conv_transpose{_dimensions}d"):
        OPERATIONS[_name] = _convolution(_name, _dimensions)


@operation("matmul", "__matmul__", "mm", "bmm", "mv")
def _matmul(settings: RelevanceSettings, a: Tensor, b: Tensor) -> Tensor:
    _refuse_product("matmul", a, b)
    if depends(a):
        return affine(settings, Affine("dense", lambda x, w, _: torch.matmul(x[0], w), b), a)  # type: ignore[arg-type]
    return affine(settings, Affine("dense", lambda x, w, _: torch.matmul(w, x[0]), a), b)  # type: ignore[arg-type]


@operation("__rmatmul__")
def _rmatmul(settings: RelevanceSettings, a: Tensor, b: Tensor) -> Tensor:
    return _matmul(settings, b, a)


@operation("addmm")
def _addmm(settings: RelevanceSettings, input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    if depends(input) or depends(mat2):
        raise UnsupportedOperationError("addmm whose bias or second matrix depends on the input")
    return affine(settings, Affine("dense", _add_product, mat2, input, input), mat1)


def _add_product(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    product = torch.matmul(x[0], w)  # type: ignore[arg-type]
    return product if b is None else product + b


# --- sums and scaling ----------------------------------------------------------------------------------------------


@operation("add", "__add__", "__radd__", "__iadd__")
def _add(settings: RelevanceSettings, a: Tensor | float, b: Tensor | float, *, alpha: float = 1) -> Tensor:
    b = _scaled(b, alpha)
    if depends(a) and depends(b):
        summands = torch.broadcast_tensors(a, b)  # type: ignore[arg-type]
        return affine(settings, Affine("sum", lambda x, _, __: x[0] + x[1]), *summands)
    (x, constant) = (a, b) if depends(a) else (b, a)
    return _add_constant(settings, x, constant)  # type: ignore[arg-type]


def _add_constant(settings: RelevanceSettings, x: Tensor, constant: Tensor | float) -> Tensor:
    constant = torch.as_tensor(constant, dtype=x.dtype, device=x.device)
    shape = torch.broadcast_shapes(x.shape, constant.shape)
    return affine(settings, Affine("sum", _plus_bias, None, constant, constant), x.expand(shape))


def _plus_bias(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] + 0 if b is None else x[0] + b


def _scaled(x: Tensor | float, factor: Tensor | float) -> Tensor | float:
    if isinstance(factor, int | float) and factor == 1:
        return x
    if not depends(x):
        return x * factor
    if isinstance(factor, Tensor) and factor.dim():
        x = x.expand(torch.broadcast_shapes(x.shape, factor.shape))  # type: ignore[union-attr]
    return pass_on(lambda value: value * factor, x)  # type: ignore[arg-type]


@operation("sub", "subtract", "__sub__", "__isub__")
def _sub(settings: RelevanceSettings, a: Tensor | float, b: Tensor | float, *, alpha: float = 1) -> Tensor:
    return _add(settings, a, _scaled(b, -alpha))


@operation("rsub", "__rsub__")
def _rsub(settings: RelevanceSettings, a: Tensor | float, b: Tensor | float) -> Tensor:
    return _sub(settings, b, a)


@operation("neg", "negative", "__neg__")
def _neg(settings: RelevanceSettings, x: Tensor) -> Tensor:
    return pass_on(torch.neg, x)


@operation("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def _mul(settings: RelevanceSettings, a: Tensor | float, b: Tensor | float) -> Tensor:
    _refuse_product("mul", a, b)
    return _scaled(a, b) if depends(a) else _scaled(b, a)  # type: ignore[return-value]


@operation("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def _div(settings: RelevanceSettings, a: Tensor | float, b: Tensor | float) -> Tensor:
    if depends(b):
        raise UnsupportedOperationError("division by a quantity that depends on the input")
    return _scaled(a, 1 / b)  # type: ignore[return-value]


@operation("mean")
def _mean(settings: RelevanceSettings, x: Tensor, *dim: Any, **options: Any) -> Tensor:
    return affine(settings, Affine("pooling", lambda v, _, __: v[0].mean(*dim, **options)), x)


@operation("sum")
def _sum(settings: RelevanceSettings, x: Tensor, *dim: Any, **options: Any) -> Tensor:
    return affine(settings, Affine("pooling", lambda v, _, __: v[0].sum(*dim, **options)), x)


# --- pooling -------------------------------------------------------------------------------------------------------


def _average(function: Callable[..., Tensor]) -> Handler:
    def handler(settings: RelevanceSettings, x: Tensor, *args: Any, **options: Any) -> Tensor:
        return affine(settings, Affine("pooling", lambda v, _, __: function(v[0], *args, **options)), x)

    return handler


for _function in (
    F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d,
    F.interpolate, F.upsample,
):  # fmt: skip
    OPERATIONS[_function.__name__] = _average(_function)


def _max_pool(dimensions: int) -> tuple[Handler, Handler]:
    slow = getattr(F, f"max_pool{dimensions}d")

    def plain(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        if return_indices or ceil_mode or input.device.type != "cpu" or input.dim() != dimensions + 2:
            return slow(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        return max_pool(input, _sizes(dimensions, kernel_size, stride, padding, dilation))

    def handler(settings: RelevanceSettings, input: Tensor, *args: Any, **options: Any) -> Tensor:
        bound = signature(plain).bind(input, *args, **options)
        bound.apply_defaults()
        if bound.arguments["return_indices"]:
            raise UnsupportedOperationError("max pooling that returns indices")
        _, kernel_size, stride, padding, dilation, *_ = bound.args
        sizes = _sizes(dimensions, kernel_size, stride, padding, dilation)
        result: Tensor = WinnerRelevance.apply(lambda x: plain(x, *bound.args[1:]), sizes, input)  # type: ignore[no-untyped-call]
        return result

    return plain, handler


def _sizes(dimensions: int, kernel_size: Any, stride: Any, *others: Any) -> list[tuple[int, ...]]:
    stride = kernel_size if stride is None or stride == [] else stride
    sizes = (kernel_size, stride, *others)
    return [tuple(size) if isinstance(size, tuple | list) else (size,) * dimensions for size in sizes]


def _adaptive_max_pool(dimensions: int) -> Handler:
    pool = getattr(F, f"adaptive_max_pool{dimensions}d")

    def handler(settings: RelevanceSettings, x: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
        if return_indices:
            raise UnsupportedOperationError("adaptive max pooling that returns indices")
        sizes = adaptive_windows(x.shape[-dimensions:], output_size)
        if sizes is None:
            raise UnsupportedOperationError(
                f"adaptive max pooling from {tuple(x.shape[-dimensions:])} to {output_size}, whose windows differ in size"
            )
        result: Tensor = WinnerRelevance.apply(lambda v: pool(v, output_size), sizes, x)  # type: ignore[no-untyped-call]
        return result

    return handler


for _dimensions in (1, 2, 3):
    FASTER[f"max_pool{_dimensions}d"], OPERATIONS[f"max_pool{_dimensions}d"] = _max_pool(_dimensions)
    OPERATIONS[f"adaptive_max_pool{_dimensions}d"] = _adaptive_max_pool(_dimensions)


@operation("amax")
def _amax(settings: RelevanceSettings, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Return the largest value; equal largest values share its relevance, as PyTorch's own gradient of amax does."""
    result: Tensor = torch.amax(x, dim, keepdim)
    return result


@operation("max")
def _max(settings: RelevanceSettings, x: Tensor, *args: Any, **options: Any) -> Any:
    dim = options.get("dim", args[0] if args else None)
    if not isinstance(dim, int):
        raise UnsupportedOperationError("max without a dimension, or of two tensors")
    keepdim = bool(options.get("keepdim", args[1] if len(args) > 1 else False))
    index = x.detach().argmax(dim, keepdim=keepdim)
    return torch.return_types.max((torch.amax(x, dim, keepdim), index))  # type: ignore[attr-defined]


# --- normalisation and dropout --------------------------------------------------------------------------------------


@operation("batch_norm")
def _batch_norm(
    settings: RelevanceSettings, input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    if training or running_mean is None or running_var is None:
        raise UnsupportedOperationError("batch_norm without stored statistics, which mixes the inputs of a batch")
    shape = (-1, *[1] * (input.dim() - 2))
    scale = torch.rsqrt(running_var + eps)
    scale = (scale if weight is None else scale * weight).reshape(shape)
    shift = (0.0 if bias is None else bias.reshape(shape)) - running_mean.reshape(shape) * scale
    return affine(settings, Affine("normalisation", _scale_and_shift, scale, shift, shift), input)


def _scale_and_shift(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] * w if b is None else torch.addcmul(b, x[0], w)  # type: ignore[operator, arg-type]


def _normalise(
    settings: RelevanceSettings, x: Tensor, dims: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Subtract the mean and divide by the deviation over `dims`, the deviation held constant."""
    deviation = torch.sqrt(x.detach().var(dims, unbiased=False, keepdim=True) + eps)
    scale = 1 / deviation if weight is None else weight / deviation

    def function(v: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        z = (v[0] - v[0].mean(dims, keepdim=True)) * scale
        return z if b is None else z + b

    def spread(v: tuple[Tensor, ...]) -> Tensor:
        return v[0].mean(dims, keepdim=True).expand_as(v[0])

    return affine(settings, Affine("normalisation", function, None, bias, bias, spread), x)


@operation("layer_norm")
def _layer_norm(
    settings: RelevanceSettings, input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5, *_: Any,
) -> Tensor:  # fmt: skip
    return _normalise(settings, input, tuple(range(-len(tuple(normalized_shape)), 0)), weight, bias, eps)


@operation("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")
def _dropout(settings: RelevanceSettings, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if training:
        raise UnsupportedOperationError("dropout that stays active in evaluation, so that no two passes agree")
    return input


# --- recurrent layers -------------------------------------------------------------------------------------------------


def _lstm_step(
    settings: RelevanceSettings, x: Tensor, state: tuple[Tensor, Tensor], weights: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM. The gates are held constant; relevance flows through the cell and its candidate.

    References
    ----------
    .. [1] L. Arras, G. Montavon, K.-R. Müller, W. Samek, "Explaining recurrent neural network predictions in
       sentiment analysis", WASSA 2017.
    """
    hidden, cell = state
    joined = torch.cat([x, hidden], 1)
    weight = torch.cat(weights[:2], 1)
    bias = weights[2] + weights[3] if len(weights) > 2 else None
    into, forget, _, out = F.linear(joined.detach(), weight, bias).chunk(4, 1)
    rows = slice(2 * hidden.shape[1], 3 * hidden.shape[1])
    candidate = _linear(settings, joined, weight[rows], None if bias is None else bias[rows])
    candidate = _scaled(pass_on(torch.tanh, candidate), torch.sigmoid(into))  # type: ignore[assignment]
    kept = _scaled(cell, torch.sigmoid(forget))
    cell = _add(settings, kept, candidate)
    return _scaled(pass_on(torch.tanh, cell), torch.sigmoid(out)), cell  # type: ignore[return-value]


@operation("lstm")
def _lstm(
    settings: RelevanceSettings, input: Tensor, initial: Any, weights: Any, has_biases: Any, layers: int = 1,
    dropout: float = 0.0, train: bool = False, bidirectional: bool = False, batch_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    if not isinstance(has_biases, bool):
        raise UnsupportedOperationError("LSTM over packed sequences; pad them instead")
    each = 4 if has_biases else 2
    if len(weights) != layers * (1 + bidirectional) * each:
        raise UnsupportedOperationError("LSTM with a projection")
    x = input.transpose(0, 1) if batch_first else input
    hidden: list[Tensor] = []
    cells: list[Tensor] = []
    for layer in range(layers):
        directions = []
        for backwards in range(1 + bidirectional):
            index = layer * (1 + bidirectional) + backwards
            state = (initial[0][index], initial[1][index])
            outputs = []
            for step in reversed(x.unbind(0)) if backwards else x.unbind(0):
                state = _lstm_step(settings, step, state, tuple(weights[index * each : (index + 1) * each]))
                outputs.append(state[0])
            directions.append(torch.stack(outputs[::-1] if backwards else outputs))
            hidden.append(state[0])
            cells.append(state[1])
        x = torch.cat(directions, 2)
    return x.transpose(0, 1) if batch_first else x, torch.stack(hidden), torch.stack(cells)


@operation("lstm_cell")
def _lstm_cell(settings: RelevanceSettings, input: Tensor, state: Any, *weights: Tensor) -> tuple[Tensor, Tensor]:
    return _lstm_step(settings, input, (state[0], state[1]), tuple(w for w in weights if w is not None))
