"""Activation functions, softmax among them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.onnx.registry import Build, Function, Node, functions, operator

functions({"HardSwish": F.hardswish, "Softplus": F.softplus, "Softsign": F.softsign, "Mish": F.mish})


_PLAIN: dict[str, type[nn.Module]] = {"Relu": nn.ReLU, "Sigmoid": nn.Sigmoid, "Tanh": nn.Tanh}


@operator(*_PLAIN)
def _plain(node: Node) -> nn.Module:
    return _PLAIN[node.operator]()


@operator("LeakyRelu")
def _leaky_relu(node: Node) -> nn.Module:
    return nn.LeakyReLU(node.get("alpha", 0.01))


@operator("Elu")
def _elu(node: Node) -> nn.Module:
    return nn.ELU(node.get("alpha", 1.0))


@operator("Celu")
def _celu(node: Node) -> nn.Module:
    return nn.CELU(node.get("alpha", 1.0))


@operator("ThresholdedRelu")
def _thresholded_relu(node: Node) -> nn.Module:
    return nn.Threshold(node.get("alpha", 1.0), 0.0)


@operator("Gelu")
def _gelu(node: Node) -> nn.Module:
    return nn.GELU(approximate=node.get("approximate", "none"))


@operator("Swish")
def _swish(node: Node) -> Function:
    alpha = node.get("alpha", 1.0)
    return F.silu if alpha == 1 else lambda x: x * torch.sigmoid(alpha * x)


@operator("Selu")
def _selu(node: Node) -> Function:
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    if math.isclose(alpha, 1.6732632423543772, rel_tol=1e-6) and math.isclose(gamma, 1.0507009873554805, rel_tol=1e-6):
        return F.selu
    return lambda x: gamma * F.elu(x, alpha)


@operator("HardSigmoid")
def _hard_sigmoid(node: Node) -> Function:
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5:
        return F.hardsigmoid
    return lambda x: (x * alpha + beta).clamp(0, 1)


@operator("PRelu")
def _prelu(node: Node) -> Function:
    def run(x: Tensor, slope: Tensor) -> Tensor:
        channels = [1, *x.shape[1:2], *[1] * (x.dim() - 2)]
        full = [1] * (x.dim() - slope.dim()) + list(slope.shape)
        per_channel = node.opset < 7 and slope.shape == x.shape[1:2]
        if slope.numel() == 1 or full == channels or per_channel:
            return F.prelu(x, slope.flatten())
        return torch.where(x < 0, x * slope, x)

    return run


@operator("Clip")
def _clip(node: Node) -> Function:
    if node.opset < 11:
        low, high = node.get("min"), node.get("max")
        return lambda x: x if low is None and high is None else torch.clamp(x, low, high)

    def run(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
        for bound, end in ((low, torch.maximum), (high, torch.minimum)):
            if bound is not None and bound.numel() > 1:  # of a quantised array, one for each channel
                x = end(x, bound)
        bounds = [None if bound is None or bound.numel() > 1 else bound.item() for bound in (low, high)]
        return x if bounds == [None, None] else torch.clamp(x, *bounds)

    return run


def _over_axis(function: Callable[[Tensor, int], Tensor]) -> Build:
    """Return what builds a function over one axis, and before opset 13 over all axes from one on."""

    def build(node: Node) -> Function:
        axis = node.get("axis", 1 if node.opset < 13 else -1)

        def flattened(x: Tensor) -> Tensor:
            first = axis % x.dim() if x.dim() else 0
            if first == x.dim() - 1:
                return function(x, -1)
            rows = x.reshape(math.prod(x.shape[:first]), math.prod(x.shape[first:]))
            return function(rows, -1).reshape(x.shape)

        return flattened if node.opset < 13 else lambda x: function(x, axis)

    return build


def _hardmax(x: Tensor, axis: int) -> Tensor:
    return torch.zeros_like(x).scatter(axis, x.argmax(axis, keepdim=True), 1.0)


operator("Softmax")(_over_axis(F.softmax))
operator("LogSoftmax")(_over_axis(F.log_softmax))
operator("Hardmax")(_over_axis(_hardmax))


@operator("Dropout")
def _dropout(node: Node) -> Function:
    training, ratio = node.constants.get(2), node.constants.get(1)
    active = node.has(2) and (training is None or bool(training.item()))
    if active and (ratio is None or bool(ratio.item())):
        raise node.refuse("dropout that stays active in evaluation")
    node.get("ratio"), node.get("seed"), node.get("is_test")
    if len(node.outputs) > 1:
        return lambda x, *_: (x, torch.ones_like(x, dtype=torch.bool))
    return lambda x, *_: x
