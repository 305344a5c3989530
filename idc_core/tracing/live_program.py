"""A network as a chain of layers, small enough to run where its input is changed: in a browser, while a hand moves.

The operations are those that the network runs on one input. A chain is: convolutions and dense layers, with what scales
and shifts their channels behind them folded in, element-wise activation functions, pooling, and what only reshapes.
What runs it is `assets/live/engine.js`: scores, activations and the relevance of the input by LRP-epsilon. ONNX Runtime
Web would run more networks; it has no relevance and is some twelve megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.utils import _pair
from torch.overrides import TorchFunctionMode

from idc_core.base.own_code import is_mistake
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.calls import Args, Kwargs, Operation, name_of, plain_name, tensors_of
from idc_core.lrp.channel_maps import MAPS, Layout, Map
from idc_core.lrp.operations import READS, STRUCTURAL
from idc_core.lrp.session import undisturbed
from idc_core.tracing.batching import batches
from idc_core.tracing.neurons import axis_in, neuron_axes
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import trace

MOST_BYTES = 5_000_000
"""Weights that a browser is sent, at most."""

MOST_PRODUCTS = 10_000_000
"""Products of one pass, at most: a browser then still runs the network about 20 times a second, there and back."""

_NOTHING = STRUCTURAL | {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"}
"""Operations that leave the numbers and their order as they are, or are refused."""


@dataclass(frozen=True, eq=False)
class LiveStep:
    """One layer of a chain: its kind, the shape of its result, its settings, and its weights if it has any.

    Kinds are "convolution" and "dense", "maximum" and "average" (pooling), "relu", "sigmoid", "tanh", and "scale",
    which scales and shifts channels before any weights and hands relevance on.
    """

    kind: str
    shape: tuple[int, ...]
    settings: dict[str, list[int] | int]
    weight: NDArray[np.float32] | None = None
    bias: NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False)
class LiveProgram:
    """A network as a chain.

    Attributes
    ----------
    shape : tuple of int
        Of one input.
    steps : tuple of LiveStep
        From the input to the scores before a final softmax.
    layer : int
        How many steps give the examined layer, its activation function included. A neuron's activation is the mean over
        the positions of its channel.
    """

    shape: tuple[int, ...]
    steps: tuple[LiveStep, ...]
    layer: int

    @property
    def weights(self) -> NDArray[np.float32]:
        """All weights and biases in the order of the steps, float32 (numbers,)."""
        arrays = [array.ravel() for step in self.steps for array in (step.weight, step.bias) if array is not None]
        return np.concatenate([np.zeros(0, np.float32), *arrays])

    def description(self) -> dict[str, Any]:
        """Return all but the weights, of which the number in each step is told, as what JSON can hold."""
        steps = [
            {
                "kind": step.kind,
                "shape": list(step.shape),
                **step.settings,
                "weights": 0 if step.weight is None else step.weight.size,
                "biases": 0 if step.bias is None else step.bias.size,
            }
            for step in self.steps
        ]
        return {"shape": list(self.shape), "steps": steps, "layer": self.layer}


def live_program(model: nn.Module, inputs: Inputs, layer: str) -> LiveProgram:
    """Describe a network as a chain, from the operations that it runs on the first of some inputs.

    Parameters
    ----------
    model : Module
        Left as it was found.
    inputs : Tensor, array or Dataset, float (n, ...)
    layer : str
        The layer whose activations are to be shown.

    Raises
    ------
    UnsupportedOperationError
        If the network is no such chain, is too large, or has the layer inside of a step. The message says which
        operation stands in the way.
    """
    shown = next(trace(model, inputs, [layer]))
    example = next(batches(model, inputs, [])).inputs
    if not isinstance(example, Tensor) or not example.is_floating_point():
        raise _refused("it reads words, or several inputs")
    calls = _recorded(model, example[:1])
    wanted, scores = shown.activations[layer][:1], shown.scores[:1]
    calls = calls[: _place(calls, lambda value: value.numel() == scores.numel() and _equal(value, scores), "scores")]
    at = _place(calls, lambda value: value.shape == wanted.shape and _equal(value, wanted), f"layer {layer!r}")
    if wanted.dim() > 2 and axis_in(wanted.dim(), neuron_axes(model, [layer])[layer]) != 1:
        raise _refused(f"the neurons of layer {layer!r} lie behind its positions")
    steps, layers = _translated(calls, at)
    program = LiveProgram(tuple(example.shape[1:]), steps, layers)
    _check_size(program)
    return program


def _refused(why: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"The network is no chain that can run in a browser: {why}.")


@dataclass(frozen=True, eq=False)
class _Call:
    """One operation of a network, what it was given and what it returned."""

    name: str
    args: Args
    kwargs: Kwargs
    given: Tensor
    result: Tensor


class _Recorder(TorchFunctionMode):
    """Notes the operations between an input and what is computed of it, each of the one before."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.calls: list[_Call] = []
        self._values, self._copy = [start], start.clone()

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        kwargs, name = kwargs or {}, name_of(func)
        used = [x for x in tensors_of(args, kwargs) if any(x is value for value in self._values)]
        result = func(*args, **kwargs)
        if not used or name in READS:
            return result
        if len(used) > 1 or used[0] is not self._values[-1]:
            raise _refused(f"{name} takes a value that others take as well")
        if not isinstance(result, Tensor):
            raise _refused(f"{name} is no layer of a chain")
        given, self._copy = self._copy, result.clone()
        self.calls.append(_Call(plain_name(name, kwargs)[0], args, kwargs, given, self._copy))
        self._values.append(result)
        return result


def _recorded(model: nn.Module, example: Tensor) -> list[_Call]:
    recorder = _Recorder(example.clone())
    with undisturbed(model), torch.no_grad():
        try:
            with recorder:
                model(recorder._values[0])
        except UnsupportedOperationError:
            raise
        except Exception as error:
            if not is_mistake(error):
                raise
            raise _refused("it is called with more than its input") from error
    return recorder.calls


def _equal(value: Tensor, other: Tensor) -> bool:
    scale = float(other.abs().max()) or 1.0
    return torch.allclose(value.flatten().double(), other.flatten().double(), rtol=1e-5, atol=1e-6 * scale)


def _place(calls: list[_Call], is_meant: Callable[[Tensor], bool], what: str) -> int:
    """Return behind how many calls a value is: the first that is meant, with those that leave it as it is."""
    meant = [is_meant(call.result) for call in calls]
    if True not in meant:
        raise _refused(f"its {what} lie inside of a step, or behind more than a chain")
    first = meant.index(True)
    return first + (meant[first:].index(False) if False in meant[first:] else len(meant) - first)


def _translated(calls: list[_Call], at: int) -> tuple[tuple[LiveStep, ...], int]:
    """Return the steps of calls, and how many of them the first `at` calls are."""
    steps: list[LiveStep] = []
    foldable, layers = False, 0  # foldable: the last call was a convolution or a dense layer, or folded into one
    for number, call in enumerate(calls):
        if call.name in _STEPS:
            steps.append(_STEPS[call.name](call, *call.args, **_named(call)))
            foldable = steps[-1].kind in ("convolution", "dense")
        elif call.name in MAPS and foldable:
            if number == at:
                raise _refused(f"{call.name} behind the layer is folded into it")
            steps[-1] = _folded(steps[-1], call)
        elif call.name in _NOTHING and call.given.numel() == call.result.numel() and _equal(call.given, call.result):
            foldable = False
        else:
            raise _refused(f"{call.name} is no layer of a chain")
        layers = len(steps) if number < at else layers
    return tuple(steps), layers


def _named(call: _Call) -> Kwargs:
    return {key: value for key, value in call.kwargs.items() if key not in ("inplace", "input")}


def _array(values: Tensor | None) -> NDArray[np.float32] | None:
    return None if values is None else values.detach().cpu().float().contiguous().numpy()


def _folded(step: LiveStep, call: _Call) -> LiveStep:
    """Scale and shift the channels of a convolution or a dense layer as the map behind it does."""
    found = MAPS[call.name](call.args, call.kwargs, lambda value: value is not call.args[0])
    layout = Layout(-1 if step.kind == "dense" else -3)
    if found is None or step.weight is None or not found[1].fits(layout, call.given, before=False):
        raise _refused(f"{call.name} does not scale whole channels")
    scale, shift = (_per_channel(part, layout, call.given) for part in (found[1].scale, found[1].shift))
    weight = step.weight * scale.reshape(-1, *[1] * (step.weight.ndim - 1))
    bias = (0.0 if step.bias is None else step.bias * scale) + shift
    return replace(step, weight=weight.astype(np.float32), bias=np.asarray(bias, np.float32))


def _per_channel(values: Tensor | None, layout: Layout, like: Tensor) -> NDArray[np.float64]:
    spread = None if values is None else layout.per_channel(values, like)
    channels = like.shape[layout.axis]
    return np.zeros(channels) if spread is None else spread.detach().cpu().double().numpy()


_Translate = Callable[..., LiveStep]
_STEPS: dict[str, _Translate] = {}
"""Operation name -> the step that it is; called with the call and the operation's own arguments."""


def _step(*names: str) -> Callable[[_Translate], _Translate]:
    def enter(translate: _Translate) -> _Translate:
        def bound(call: _Call, *args: object, **kwargs: object) -> LiveStep:
            try:
                signature(translate).bind(call, *args, **kwargs)
            except TypeError:
                raise _refused(f"{call.name} is called with {', '.join(kwargs)}") from None
            return translate(call, *args, **kwargs)

        _STEPS.update(dict.fromkeys(names, bound))
        return translate

    return enter


def _shape(call: _Call) -> tuple[int, ...]:
    return tuple(call.result.shape[1:])


@_step("relu", "sigmoid", "tanh")
def _activation(call: _Call, x: Tensor | None = None) -> LiveStep:
    return LiveStep(call.name, _shape(call), {})


@_step("linear")
def _linear(call: _Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> LiveStep:
    if call.given.dim() != 2:
        raise _refused("a dense layer runs at several positions")
    return LiveStep("dense", _shape(call), {}, _array(weight), _array(bias))


@_step("conv2d")
def _convolution(
    call: _Call,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> LiveStep:
    if padding == "same" and any(d * (k - 1) % 2 for d, k in zip(_pair(dilation), weight.shape[2:], strict=True)):
        raise _refused("a convolution is padded more on one side than on the other")
    if isinstance(padding, str):
        reach = [d * (k - 1) // 2 for d, k in zip(_pair(dilation), weight.shape[2:], strict=True)]
        padding = reach if padding == "same" else 0
    sizes = {"stride": stride, "padding": padding, "dilation": dilation}
    settings: dict[str, list[int] | int] = {name: list(_pair(size)) for name, size in sizes.items()}
    settings |= {"kernel": list(weight.shape[2:]), "groups": groups}
    return LiveStep("convolution", _shape(call), settings, _array(weight), _array(bias))


def _pool(call: _Call, kind: str, kernel: Any, stride: Any, padding: Any) -> LiveStep:
    if call.given.dim() != 4:
        raise _refused(f"{call.name} pools no pictures")
    stride = kernel if stride is None or stride == [] else stride
    sizes = {"kernel": kernel, "stride": stride, "padding": padding}
    return LiveStep(kind, _shape(call), {name: [int(n) for n in _pair(size)] for name, size in sizes.items()})


@_step("max_pool2d")
def _max_pool(
    call: _Call,
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> LiveStep:
    if _pair(dilation) != (1, 1):
        raise _refused("max pooling is dilated")
    return _pool(call, "maximum", kernel_size, stride, padding)


@_step("avg_pool2d")
def _average_pool(
    call: _Call,
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> LiveStep:
    if ceil_mode or divisor_override or (not count_include_pad and _pair(padding) != (0, 0)):
        raise _refused("average pooling does not divide by the size of its window")
    return _pool(call, "average", kernel_size, stride, padding)


@_step("adaptive_avg_pool2d")
def _adaptive_average(call: _Call, x: Tensor, output_size: Any) -> LiveStep:
    sides = list(zip(call.given.shape[2:], call.result.shape[2:], strict=True))
    if any(side % pooled for side, pooled in sides):
        raise _refused("adaptive pooling has windows of several sizes")
    kernel = tuple(side // pooled for side, pooled in sides)
    return _pool(call, "average", kernel, kernel, 0)


@_step("mean")
def _mean(call: _Call, x: Tensor, dim: Any = None, keepdim: bool = False) -> LiveStep:
    axes = sorted(axis % call.given.dim() for axis in ([] if dim is None else [dim] if isinstance(dim, int) else dim))
    if axes != [2, 3]:
        raise _refused("a mean is not taken over all positions of a picture")
    kernel = tuple(call.given.shape[2:])
    return replace(_pool(call, "average", kernel, kernel, 0), shape=(call.given.shape[1], 1, 1))


@_step("scale_channels")
def _scale(call: _Call, x: Tensor, scale: Tensor, shift: Tensor) -> LiveStep:
    layout = Layout(1 - call.given.dim())
    parts = [_per_channel(part, layout, call.given).astype(np.float32) for part in (scale, shift)]
    if not Map(scale, shift).fits(layout, call.given, before=False):
        raise _refused("inputs are not scaled by whole channels")
    return LiveStep("scale", _shape(call), {}, *parts)


def _check_size(program: LiveProgram) -> None:
    """Refuse what a browser would be slow to fetch or to run."""
    products = sum(prod(step.shape) * step.weight[0].size for step in program.steps if step.weight is not None)
    if program.weights.nbytes > MOST_BYTES:
        raise _refused(f"its weights take {program.weights.nbytes:,} bytes, more than {MOST_BYTES:,}")
    if products > MOST_PRODUCTS:
        raise _refused(f"one pass takes {products:,} products, more than {MOST_PRODUCTS:,}")
