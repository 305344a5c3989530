"""Where relevance loses all its digits: shares that nearly cancel grow from layer to layer, until sums mean nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.errors import IdcError
from idc_core.lrp.captures import INPUT
from idc_core.lrp.rules import RULES, RelevanceSettings
from idc_core.lrp.session import named_layers
from idc_core.tracing.neurons import Neuron
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import trace

_KEPT = 0.1
"""Share of the score that rounding may take of a layer's sum before none of its digits counts."""

_LEAST = 1e-30
"""Stands for a score of 0."""

_OFFERED: tuple[tuple[str, str], ...] = (
    *(("gamma", ""), ("", "absorb"), ("epsilon", "absorb"), ("gamma", "absorb"), ("composite", "absorb")),
    *(("epsilon-plus", "absorb"), ("excitation-backprop", "absorb")),
)
"""Rules that are tried in place of one that does not hold, with what they do to biases; "" for the same ones."""


@dataclass(frozen=True)
class Lost:
    """The layer, coming from the scores, at which relevance begins to lose its digits.

    `times` is how many times the score the sum of its sizes is; infinite where a number is not finite.
    """

    layer: str
    times: float


def first_lost(layers: Mapping[str, NDArray[np.floating]], score: float) -> Lost | None:
    """Return where relevance of one input begins to lose all its digits; None where it keeps some.

    Parameters
    ----------
    layers : mapping of str to ndarray, (...)
        Relevance of one input by layer, from the scores to the input, in the type in which it was computed.
    score : float
        What relevance starts from; a score near 0 may cancel by itself, so that the largest of an input's scores is
        meant.
    """
    for layer, values in layers.items():
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.abs(values, dtype=np.float64).sum())
        times = size / max(abs(score), _LEAST) if np.isfinite(values).all() else float("inf")
        if times > _KEPT / np.finfo(values.dtype).eps:
            return Lost(layer, times)
    return None


def said_lost(
    model: nn.Module,
    one: Inputs,
    settings: RelevanceSettings,
    target: str | int | Iterable[int] = "predicted",
    of: Neuron | None = None,
) -> str:
    """Say where relevance of one input loses all its digits, and which rule holds there; empty where it keeps some.

    Parameters
    ----------
    model : Module
    one : array or Tensor, (1, ...)
    settings, target, of
        As in `idc_core.tracing.trace.trace`.
    """
    layers = _ordered(model, one)
    lost = _lost(model, one, layers, settings, target, of)
    if lost is None:
        return ""
    size = "is not finite" if lost.times == float("inf") else f"reaches {lost.times:.1g} times the score"
    said = (
        f"Relevance by {_called(settings)} loses all its digits from layer {lost.layer!r} on, coming from the scores: "
        f"its size {size}. "
    )
    for rule, bias in _OFFERED:
        other = _other(settings, rule, bias)
        if other != settings and _lost(model, one, layers, other, target, of) is None:
            return f"{said}{_called(other)} holds here (rule={other.rule!r}, bias={other.bias!r})."
    wide = lost.times < _KEPT / np.finfo(np.float64).eps
    return said + (
        "Double precision holds here: model.double()." if wide else "No other rule that was tried holds here."
    )


def _other(settings: RelevanceSettings, rule: str, bias: str) -> RelevanceSettings:
    own = dict(settings.values) if not rule else {}
    return RelevanceSettings(rule or settings.rule, bias=bias or settings.bias, **own)


def _called(settings: RelevanceSettings) -> str:
    biases = "biases redistributed" if settings.bias == "redistribute" else "biases absorbed"
    return f"{RULES[settings.rule].label if settings.rule in RULES else settings.rule} with {biases}"


def _ordered(model: nn.Module, one: Inputs) -> Sequence[str]:
    """Return the layers with weights from the scores to the input, those that ran last first."""
    ran: list[str] = []
    hooks = []
    for name, module in named_layers(model).items():
        if name and next(module.children(), None) is None and next(module.parameters(), None) is not None:
            hooks.append(module.register_forward_hook(lambda *_, name=name: ran.append(name)))
    try:
        with torch.no_grad():
            for _ in trace(model, one, []):
                pass
    finally:
        for hook in hooks:
            hook.remove()
    return [*reversed(list(dict.fromkeys(ran))), INPUT]


def _lost(
    model: nn.Module,
    one: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings,
    target: str | int | Iterable[int],
    of: Neuron | None,
) -> Lost | None:
    """Return where digits are lost; layers that relevance does not reach, or cannot be told of, are left out."""
    try:
        (batch,) = trace(model, one, layers, settings, target=target, of=of)
    except IdcError:
        if len(layers) == 1:
            return None
        half = len(layers) // 2
        parts = layers[:half], layers[half:]
        return next((lost for part in parts if (lost := _lost(model, one, part, settings, target, of))), None)
    found = {layer: _array(batch.relevance[layer]) for layer in layers}
    return first_lost(found, float(batch.scores.abs().max()))


def _array(value: Tensor) -> NDArray[np.floating]:
    return np.asarray(value.detach().cpu().numpy()[0])
