"""What a neuron of a layer is: a unit, a channel, a feature of tokens, a head; its activation and its relevance."""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.parameters import shown, whole_number
from idc_core.errors import SettingError
from idc_core.lrp.captures import INPUT
from idc_core.lrp.layer_parts import HEADS, PARTS, split_layer
from idc_core.lrp.session import named_layers
from idc_core.tracing.parts import TokenMask, padding_of

Neuron = tuple[str, int]
"""The name of a layer, and which of its neurons, from 0."""

UNITS = -1
"""Neurons lie last: dense, recurrent, embedding layers."""

CHANNELS = 1
"""Neurons lie behind the inputs: convolutions and what follows them."""

TOKENS = 0
"""Neurons lie last in (n, tokens, features) and second in maps (n, channels, height, width): blocks of layers."""

_UNITS = (nn.Linear, nn.RNNBase, nn.Embedding, nn.EmbeddingBag)
_CONVOLUTIONS = (nn.modules.conv._ConvNd, nn.modules.batchnorm._NormBase, nn.GroupNorm)
_POOLING = (
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
)


def neuron_axes(model: nn.Module, layers: Iterable[str]) -> dict[str, int]:
    """Return along which axis of its output each layer's neurons lie; `TOKENS` where its shape decides.

    Layers with units (dense, recurrent, embedding, layer norm over one axis) hold them last, convolutions and pooling
    hold channels in axis 1. A block of several layers holds features last where it gives tokens (n, tokens, features),
    channels in axis 1 where it gives maps or consists of convolutions. A layer without weights is like the one before.
    """
    axes, before = {}, CHANNELS
    # One token of a layer has its features last, heads come before tokens.
    parts = {layer: part for layer in layers if (part := split_layer(layer)[1])}
    chosen = set(layers)
    for name, module in named_layers(model).items():
        axis = _axis(module)
        if axis is not None and next(module.children(), None) is None:
            before = axis
        if name in chosen:
            axes[name] = before if axis is None else axis
    axes |= {layer: CHANNELS if part == HEADS else UNITS for layer, part in parts.items()}
    return {layer: axes.get(layer, CHANNELS) for layer in layers}


def _axis(module: nn.Module) -> int | None:
    """Return where a module's neurons lie; None where it has no weights that tell."""
    if isinstance(module, nn.LayerNorm):
        last = getattr(module, "data_format", "channels_last") == "channels_last"  # ConvNeXt in transformers has both
        return UNITS if last and len(module.normalized_shape) == 1 else CHANNELS
    if isinstance(module, _UNITS) or hasattr(module, "_packed_params"):  # a dense layer that PyTorch has quantised
        return UNITS
    if isinstance(module, (*_CONVOLUTIONS, *_POOLING)):
        return CHANNELS
    inside = [part for part in module.modules() if part is not module]
    if any(isinstance(part, nn.Conv1d) for part in inside) and not any(isinstance(part, _UNITS) for part in inside):
        return CHANNELS
    return TOKENS if next(module.parameters(), None) is not None else None


def neuron_sentence(model: nn.Module, layer: str, shape: tuple[int, ...]) -> str:
    """Say in a sentence what a neuron of a layer is whose output for one input has this shape; "" for single units."""
    part = split_layer(layer)[1]
    if part:
        return PARTS[part].neuron
    if len(shape) < 2:
        return ""
    axis = neuron_axes(model, [layer])[layer]
    if axis_in(len(shape) + 1, axis) != len(shape):
        return "A neuron is one channel. Its activation is averaged over positions, its relevance is summed over them."
    what = "feature of the tokens" if axis == TOKENS else "unit, which every token has"
    tokens = "tokens" if padding_of(model) is None else "tokens that are no padding"
    return f"A neuron is one {what}. Its activation is averaged over {tokens}, its relevance is summed over tokens."


def countable_layers(model: nn.Module) -> tuple[str, ...]:
    """Return the names of a network's convolutions and dense layers, in the order of ``named_modules()``."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    unused = nn.modules.linear.NonDynamicallyQuantizableLinear  # holds weights of nn.MultiheadAttention, and never runs
    return tuple(
        name
        for name, module in named_layers(model).items()
        if name and isinstance(module, kinds) and not isinstance(module, unused)
    )


def check_neuron(of: object, target: object) -> Neuron:
    """Return the hidden neuron that is to be explained in place of a class; `target` must be the usual one."""
    parts = tuple(of) if isinstance(of, tuple | list) else ()
    if len(parts) != 2 or not isinstance(parts[0], str) or parts[0] == INPUT:
        raise SettingError(
            "of must be the name of a layer and the number of one of its neurons, such as ('fc2', 18), not "
            f"{shown(of)}."
        )
    if not isinstance(target, str) or target != "predicted":
        raise SettingError(f"Either a class is explained or a neuron: leave target out, since of is {parts!r}.")
    return parts[0], whole_number("The neuron of `of`", parts[1], 0)


def no_neuron(of: Neuron, count: int) -> SettingError:
    """Return the refusal of a neuron that its layer, of `count` neurons, does not have."""
    return SettingError(f"Layer {of[0]!r} has {count} neurons, from 0; there is no neuron {of[1]}.")


def behind(layer: str, end: str) -> SettingError:
    """Return the refusal of a layer that runs behind the one whose neuron is explained."""
    return SettingError(
        f"Layer {layer!r} runs behind {end!r}. What a neuron's activation comes from are the layers before it: choose "
        "one of these, or 'input'."
    )


def axis_in(dimensions: int, axis: int) -> int:
    """Return a layer's axis of neurons in a value of so many dimensions, 0 up to `dimensions` - 1."""
    if axis == TOKENS:
        return dimensions - 1 if dimensions == 3 else 1
    return axis % dimensions


def neuron_activation(value: Tensor, axis: int = CHANNELS, kept: TokenMask = None) -> Tensor:
    """Return one activation per neuron, (n, neurons): the mean over positions.

    Positions of padding are left out: `kept`, bool (n, tokens), says where tokens are none, for a layer with as many.
    """
    others, there = _positions(value, axis), kept_places(value, axis, kept)
    if there is None:
        return value.mean(others) if others else value
    return value.masked_fill(~there, 0).sum(others) / there.sum(others)


def kept_places(value: Tensor, axis: int, kept: TokenMask) -> Tensor | None:
    """Return which positions are no padding, bool, to be laid over the values; None where all of them count."""
    others = _positions(value, axis)
    if kept is None or len(others) != 1 or value.shape[others[0]] != kept.shape[1]:
        return None
    return kept.unsqueeze(3 - others[0]).to(value.device)


def neuron_relevance(value: Tensor, axis: int = CHANNELS) -> Tensor:
    """Return one relevance per neuron, (n, neurons): the sum over positions."""
    others = _positions(value, axis)
    return value.sum(others) if others else value


def _positions(value: Tensor, axis: int) -> tuple[int, ...]:
    neurons = axis_in(value.dim(), axis) if value.dim() > 1 else 1
    return tuple(d for d in range(1, value.dim()) if d != neurons)


def first_unsound(values: NDArray[np.floating]) -> int | None:
    """Return the first row of (n, ...) with a number that is not finite; None where there is none."""
    # A sum is finite only where all numbers are, and takes less time; a sum may overflow where they are.
    with np.errstate(over="ignore", invalid="ignore"):
        total = torch.from_numpy(values).sum().item() if values.flags.writeable else values.sum()  # torch is faster
        if np.isfinite(total):
            return None
    sound = np.isfinite(values).reshape(len(values), -1).all(1)
    return None if sound.all() else int(sound.argmin())
