"""How relevance passes through each operation a network may use.

Operations are met by name while the network runs (`interception`), so it does not matter whether a network writes
``nn.ReLU()``, ``F.relu(x)`` or ``x.relu_()``. A handler runs the operation on tensors that depend on the watched
layers, in a form whose backward pass carries relevance. An operation that no handler knows is refused by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from inspect import signature
from typing import Any, Protocol, TypeGuard, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Keeps, Rule, applied, conv2d, conv2d_back, pull_back, taken
from idc_core.lrp.basic_rules import FAINT
from idc_core.lrp.calls import Args, Kwargs, Operation, name_of
from idc_core.lrp.contributions import quotient
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
sigmoid logit log_sigmoid hardtanh hardswish hardsigmoid threshold _threshold clamp clamp_min clamp_max clip
"""
ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    name: getattr(torch, name, None) or getattr(F, name.removeprefix("_").replace("log_sigmoid", "logsigmoid"))
    for name in _ACTIVATIONS.split()
}
"""Element-wise non-linearities; each hands its relevance on unchanged."""

_FUNCTIONS = """
abs absolute exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal erf erfc sin cos tan sinh cosh asin acos atan
asinh acosh atanh square logit nan_to_num arcsin arccos arctan arcsinh arccosh arctanh deg2rad rad2deg sinc lgamma
erfinv floor ceil round trunc
"""
_SPECIAL = "expit erf erfc exp2 expm1 log1p logit gammaln ndtr log_ndtr entr sinc erfinv"
FUNCTIONS: dict[str, Callable[..., Tensor]] = {name: getattr(torch, name) for name in _FUNCTIONS.split()} | {
    f"special_{name}": getattr(torch.special, name) for name in _SPECIAL.split()
}
"""Other element-wise functions, met inside activation functions and normalisations that are written by hand; each hands
its relevance on unchanged as well. A captured layer does not take them along."""

HOMOGENEOUS = frozenset(("relu", "leaky_relu", "prelu", "abs", "absolute"))
"""Element-wise functions that are their gradient times their argument."""

_READS = """
.shape .dtype .device .ndim .layout .is_cuda .requires_grad size dim ndimension numel nelement stride is_contiguous
is_floating_point is_complex is_conj get_device element_size __len__ __repr__ __format__
"""
GRADIENTS = frozenset(("requires_grad_", "retain_grad", "register_hook"))
"""What a network does for its own gradients, which a pass takes no part in."""

READS = frozenset(_READS.split()) | GRADIENTS
"""What only asks about a tensor, so that a captured layer still waits for its activation function."""

_STRUCTURAL = """
reshape reshape_as view view_as as_strided flatten unflatten ravel permute transpose t swapaxes swapdims movedim
moveaxis squeeze unsqueeze contiguous clone split split_with_sizes chunk tensor_split unbind __getitem__ select narrow
index_select gather expand expand_as repeat tile flip roll to type type_as float double pixel_shuffle pixel_unshuffle
channel_shuffle positive broadcast_to repeat_interleave .T .mT .H .mH half bfloat16 diagonal take_along_dim take
masked_select index_put scatter sort topk hsplit vsplit dsplit unsafe_split unsafe_chunk atleast_1d atleast_2d
atleast_3d rot90 alias fliplr flipud _pack_padded_sequence pick_outputs broadcast_tensors as_tensor asarray meshgrid
view_as_complex fft_fftshift fft_ifftshift cfloat cdouble linalg_diagonal
"""
_FILLING = """
unfold tril triu diag_embed index_copy masked_scatter index_fill slice_scatter select_scatter diagonal_scatter
constant_pad_nd
"""
FILLING = frozenset(_FILLING.split())
"""Those of `STRUCTURAL` that fill places up with constants."""

STRUCTURAL = frozenset(_STRUCTURAL.split()) | FILLING
"""Operations that only move, copy or select numbers: the plain gradient carries relevance unchanged."""

CONVERTING = frozenset(("to", "type", "type_as", "float", "half", "bfloat16", "double"))
"""Those of `STRUCTURAL` that give a tensor back as it is where it is of a type already, and a copy where not."""

TURNING = frozenset(("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims"))
"""Those of `STRUCTURAL` whose form in place changes the axes of a tensor, and none of its numbers."""

_Entered = TypeVar("_Entered", bound=Handler)


def operation(*names: str) -> Callable[[_Entered], _Entered]:
    """Enter a handler under the names that PyTorch gives its operation."""

    def enter(handler: _Entered) -> _Entered:
        OPERATIONS.update(dict.fromkeys(names, handler))
        return handler

    return enter


@cache
def _takes(handler: Handler, count: int, names: tuple[str, ...]) -> bool:
    """Return whether a handler takes so many arguments by place, and these by name."""
    try:
        signature(handler).bind(*[None] * count, **dict.fromkeys(names))
    except TypeError:
        return False
    return True


def handled(settings: RelevanceSettings | None, name: str, args: Args, kwargs: Kwargs) -> Any:
    """Run an operation by its handler; arguments that the handler does not know are refused."""
    handler = OPERATIONS[name]
    if kwargs and not _takes(handler, 1 + len(args), tuple(kwargs)):
        raise UnsupportedOperationError(f"{name} with the arguments {', '.join(kwargs)}")
    return handler(settings, *args, **kwargs)


def affine(settings: RelevanceSettings, operation: Affine, *inputs: Tensor) -> Tensor:
    """Run an affine operation whose relevance follows the rule for its kind."""
    for parameter in (operation.weight, operation.bias):
        if parameter is not None and parameter.requires_grad:
            raise UnsupportedOperationError(
                f"a {operation.kind} operation whose weights depend on the input; relevance needs fixed weights"
            )
    if settings.as_gradient:
        return operation(inputs)
    fixed = operation.pointwise and operation.kind == "normalisation"
    return _carried(operation, settings.rule_for(operation.kind, fixed), *inputs)


class _KeepsNote(Keeps[tuple[Affine, tuple[Tensor, ...], Tensor]], Protocol):
    rule: Rule
    note: Any  # one of `folding`, which stands on this module


class _AffineRelevance(torch.autograd.Function):
    """An affine operation whose backward pass carries relevance instead of a gradient.

    Its node in the graph has a `note` where the operation may be one with a map beside it (`folding`).
    """

    @staticmethod
    def forward(ctx: _KeepsNote, affine: Affine, rule: Rule, *inputs: Tensor) -> Tensor:
        """Run the operation once, keeping its own small graph for the way back."""
        with torch.enable_grad():
            leaves = tuple(x.detach().requires_grad_() for x in inputs)
            z = affine(leaves)
        ctx.kept = affine, leaves, z
        ctx.rule, ctx.note = rule, None
        return z.detach()

    @staticmethod
    def backward(ctx: _KeepsNote, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Share the relevance of z among the inputs by the rule."""
        kept = taken(ctx)
        if ctx.note is not None:
            return (None, None, *ctx.note.share(ctx.rule, kept, grads[0]))
        return (None, None, *ctx.rule(*kept, grads[0]))


class _PassRelevance(torch.autograd.Function):
    """An element-wise operation that hands its relevance on unchanged (activation functions, scaling)."""

    @staticmethod
    def forward(ctx: _KeepsNote, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Apply the function."""
        ctx.note = None
        return function(x)

    @staticmethod
    def backward(ctx: _KeepsNote, *grads: Tensor) -> tuple[None, Tensor]:
        """Return the relevance as it came."""
        return None, grads[0] if ctx.note is None else ctx.note.passed(grads[0])


def _carried(operation: Affine, rule: Rule, *inputs: Tensor) -> Tensor:
    """Run an affine operation whose relevance follows a rule."""
    return applied(_AffineRelevance, operation, rule, *inputs)


class _AsGradient(torch.autograd.Function):
    """What hands its relevance on by a graph of its own, on a way that carries relevance / value."""

    @staticmethod
    def forward(ctx: Keeps[tuple[Tensor, Tensor]], function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Run the function once, keeping its own small graph for the way back, if it has one."""
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            z = function(leaf)
        ctx.kept = leaf, z
        return z.detach()

    @staticmethod
    def backward(ctx: Keeps[tuple[Tensor, Tensor]], *grads: Tensor) -> tuple[None, Tensor]:
        """Return the relevance of the value, divided by the value."""
        x, z = taken(ctx)
        if z.requires_grad:
            return None, quotient(pull_back(z, (x,), grads[0] * z.detach())[0], x, FAINT)
        return None, quotient(z, x, FAINT).mul_(grads[0])


def pass_on(
    settings: RelevanceSettings, function: Callable[[Tensor], Tensor], x: Tensor, keeps_zero: bool = False
) -> Tensor:
    """Run an element-wise function whose relevance passes unchanged; `keeps_zero` where it is known to map 0 to 0."""
    if not settings.as_gradient:
        return applied(_PassRelevance, function, x)
    result = applied(_AsGradient, lambda value: function(value.detach()), x)
    if not keeps_zero:
        settings.lost.append(((x.detach() == 0) & (result.detach() != 0)).any())
    return result


def keeps_zero(name: str, rest: Sequence[object], options: Kwargs) -> bool:
    """Return whether an element-wise function is known to map 0 to 0, with these arguments behind the value."""
    plain = all(isinstance(one, float | int | str | None) for one in (*rest, *options.values()))
    return plain and _of_zero(name, tuple(rest), tuple(options.items())) == 0


@lru_cache(256)
def _of_zero(name: str, rest: tuple[object, ...], options: tuple[tuple[str, object], ...]) -> float:
    function = ACTIVATIONS.get(name) or FUNCTIONS[name]
    return float(function(torch.zeros(1), *rest, **dict(options)))


def by_its_gradient(settings: RelevanceSettings, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Run a function whose own gradient carries relevance back."""
    return applied(_AsGradient, function, x) if settings.as_gradient else function(x)


def depends(x: object) -> TypeGuard[Tensor]:
    """Return whether a value depends on a watched layer."""
    return isinstance(x, Tensor) and x.requires_grad


@operation("linear")
def linear(settings: RelevanceSettings, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Run a dense operation."""
    back = partial(torch.matmul, other=weight) if weight.dim() == 2 else None
    return affine(settings, Affine("dense", _weigh, weight, bias, bias, back=back), input)


def _weigh(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return F.linear(x[0], w, b)  # type: ignore[arg-type]


def _convolution(convolve: Callable[..., Tensor], dimensions: int, backwards: Handler | None = None) -> Handler:
    def handler(
        settings: RelevanceSettings,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *rest: object,
        **options: object,
    ) -> Tensor:
        offset = None if bias is None else bias.reshape(-1, *[1] * dimensions)

        def function(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
            return convolve(x[0], w, b, *rest, **options)

        back = None if backwards is None else backwards(input.detach(), weight, *rest, **options)
        return affine(settings, Affine("convolution", function, weight, bias, offset, back=back), input)

    return handler


for _dimensions in (1, 2, 3):
    for _name in (f"conv{_dimensions}d", f"conv_transpose{_dimensions}d"):
        OPERATIONS[_name] = _convolution(getattr(torch, _name), _dimensions)
OPERATIONS["conv2d"] = _convolution(conv2d, 2, conv2d_back)


@operation("add", "__add__", "__radd__", "__iadd__")
def add(settings: RelevanceSettings, input: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Run a sum, residual connections among them; an additive mask, which hides or adds 0, is no summand."""
    unmasked = _unmasked(settings.rule_for("sum"), settings.bias == "redistribute")
    return summed(settings, input, other if alpha == 1 else scaled(settings, other, alpha), unmasked)


def summed(settings: RelevanceSettings, input: Tensor, other: Tensor, with_constant: Rule | None = None) -> Tensor:
    """Run a sum; each summand takes its share, and a constant is a bias, or follows a rule of its own."""
    x, other = (input, other) if depends(input) else (other, input)
    constant = not depends(other)
    if constant:
        other = torch.as_tensor(other, dtype=x.dtype, device=x.device)
    if settings.as_gradient:
        return x + other
    rule = settings.rule_for("sum")
    if x.shape != other.shape:
        shape = torch.broadcast_shapes(x.shape, other.shape)
        x, other = x.expand(shape), other if constant else other.expand(shape)
    if not constant:
        return _carried(Affine("sum", _total, pointwise=True), _without_hidden(rule), x, other)
    return _carried(Affine("sum", _plus_bias, None, other, other, pointwise=True), with_constant or rule, x)


def _without_hidden(rule: Rule) -> Rule:
    """Let places of minus infinity, by which a network hides scores before their exponentials, take no relevance."""

    def share(sum: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        hidden = z.detach() == -torch.inf
        if z.device.type == "cpu" and not bool(hidden.any()):
            return rule(sum, inputs, z, relevance)
        with torch.enable_grad():
            seen = tuple(x.detach().masked_fill(hidden, 0.0).requires_grad_() for x in inputs)
            z = sum(seen)
        return rule(sum, seen, z, relevance.masked_fill(hidden, 0.0))

    return share


def _unmasked(rule: Rule, spread: bool) -> Rule:
    """Pass relevance on where an additive mask adds 0, as in batches without one, and none where it hides.

    What falls to hidden places all the same, as the share of a constant joined to them, is divided equally among the
    others with `spread`.
    """

    def share(sum: Affine, inputs: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        added = cast(Tensor, sum.bias)
        least = torch.finfo(added.dtype).min / 2
        # Where nothing is hidden, as by a residual connection; a look at numbers of another device would wait for it.
        if added.device.type == "cpu" and added.numel() and float(added.amin()) >= least:
            return (torch.where(added == 0, relevance, rule(sum, inputs, z, relevance)[0]),)
        hidden = added < least
        rest = added.masked_fill(hidden, 0.0)
        with torch.enable_grad():
            z = z.masked_fill(hidden, 0.0)
        if spread and relevance.dim() > 1:
            seen, axes = ~hidden.expand(relevance.shape), tuple(range(1, relevance.dim()))
            lost = relevance.masked_fill(seen, 0.0).sum(axes, keepdim=True)
            relevance = relevance + lost / seen.sum(axes, keepdim=True).clamp(min=1)
        shares = rule(replace(sum, bias=rest, offset=rest), inputs, z, relevance)
        return (torch.where(rest == 0, relevance.masked_fill(hidden, 0.0), shares[0]),)

    return share


def _total(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] + x[1]


def _plus_bias(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] + 0 if b is None else x[0] + b


def scaled(settings: RelevanceSettings, x: Tensor, factor: Tensor | float) -> Tensor:
    """Multiply by a factor that does not depend on the input; relevance passes unchanged."""
    if not depends(x) or settings.as_gradient:
        return x * factor
    if isinstance(factor, Tensor):
        x = x.expand(torch.broadcast_shapes(x.shape, factor.shape))
    return pass_on(settings, lambda value: value * factor, x)


@operation("sub", "subtract", "__sub__", "__isub__")
def _sub(settings: RelevanceSettings, input: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    return add(settings, input, scaled(settings, other, -alpha))


@operation("rsub", "__rsub__")
def _rsub(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    return _sub(settings, other, input)


@operation("grad", "backward")
def _own_gradient(settings: RelevanceSettings, *args: object, **options: object) -> None:
    raise UnsupportedOperationError("a gradient that the network takes itself")


@operation("neg", "negative", "__neg__")
def _neg(settings: RelevanceSettings, input: Tensor) -> Tensor:
    return pass_on(settings, torch.neg, input)


@operation("pow", "__pow__", "__ipow__")
def _power(settings: RelevanceSettings, input: Tensor, exponent: Tensor) -> Tensor:
    if depends(input) and depends(exponent):
        raise UnsupportedOperationError("pow of two quantities that both depend on the input")
    if depends(input):
        return pass_on(settings, lambda value: value**exponent, input)
    return pass_on(settings, lambda value: input**value, exponent)


@operation("__rpow__")
def _power_of(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
    return _power(settings, other, input)


@operation("scale_channels")
def _scale_channels(settings: RelevanceSettings, input: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Scale pixels; as a bias the shift would take shares without bound where pixels are near the mean."""
    return pass_on(settings, lambda value: value * scale + shift, input)


@operation(
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout"
)
def _dropout(
    settings: RelevanceSettings, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    return input  # where it stays active, `randomness` has refused it


class Faster(TorchFunctionMode):
    """Runs a network's operations as a pass does where nothing is watched: the same numbers, faster."""

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        return FASTER.get(name_of(func), func)(*args, **(kwargs or {}))
