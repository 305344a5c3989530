"""Element-wise arithmetic, comparison and logic, with broadcasting."""

from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from idc_core.models.onnx.registry import Function, Node, functions, operator, room

_Plain = Callable[..., Tensor]


def _broadcast(function: _Plain) -> _Plain:
    """Return a function whose result is checked for its size before it is made."""

    def run(*values: Tensor) -> Tensor:
        if any(value.shape != values[0].shape for value in values):
            room(np.broadcast_shapes(*(value.shape for value in values)))
        return function(*values)

    return run


def _divide(x: Tensor, y: Tensor) -> Tensor:
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def _power(x: Tensor, y: Tensor) -> Tensor:
    wide = x if x.is_floating_point() or not y.is_floating_point() else x.to(y.dtype)
    return torch.pow(wide, y).to(x.dtype)


def _sum(*values: Tensor) -> Tensor:
    return reduce(torch.add, values)


def _mean(*values: Tensor) -> Tensor:
    return _sum(*values) / len(values)


def _folded(function: _Plain) -> _Plain:
    return lambda *values: reduce(function, values)


_BROADCAST: dict[str, _Plain] = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": _divide,
    "Pow": _power,
    "Sum": _sum,
    "Mean": _mean,
    "Min": _folded(torch.minimum),
    "Max": _folded(torch.maximum),
    "Equal": torch.eq,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "And": torch.logical_and,
    "Or": torch.logical_or,
    "Xor": torch.logical_xor,
    "Where": torch.where,
}


def _arithmetic(node: Node) -> Function:
    function, axis = _broadcast(_BROADCAST[node.operator]), node.get("axis")
    node.get("broadcast"), node.get("consumed_inputs")
    if node.opset > 6 or axis is None:
        return function
    # Before opset 7 the second array begins at an axis of the first.
    return lambda x, y: function(x, y.reshape(*y.shape, *[1] * (x.dim() - axis % x.dim() - y.dim())))


operator(*_BROADCAST)(_arithmetic)
functions(
    {
        "Not": torch.logical_not,
        "Abs": torch.abs,
        "Neg": torch.neg,
        "Sqrt": torch.sqrt,
        "Exp": torch.exp,
        "Log": torch.log,
        "Erf": torch.erf,
        "Reciprocal": torch.reciprocal,
        "Floor": torch.floor,
        "Ceil": torch.ceil,
        "Round": torch.round,
        "Sign": torch.sign,
        "IsNaN": torch.isnan,
        "Sin": torch.sin,
        "Cos": torch.cos,
        "Tan": torch.tan,
        "Asin": torch.asin,
        "Acos": torch.acos,
        "Atan": torch.atan,
        "Sinh": torch.sinh,
        "Cosh": torch.cosh,
        "Asinh": torch.asinh,
        "Acosh": torch.acosh,
        "Atanh": torch.atanh,
    }
)


@operator("Mod")
def _mod(node: Node) -> Function:
    return _broadcast(torch.fmod if node.get("fmod", 0) else torch.remainder)


@operator("IsInf")
def _is_infinite(node: Node) -> Function:
    positive, negative = node.get("detect_positive", 1), node.get("detect_negative", 1)

    def run(x: Tensor) -> Tensor:
        infinite = torch.isinf(x)
        return (
            infinite & ((x > 0) if positive else (x < 0) if negative else torch.zeros_like(infinite))
            if not (positive and negative)
            else infinite
        )

    return run
