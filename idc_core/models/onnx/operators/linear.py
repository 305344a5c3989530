"""Dense layers and products of matrices; with constant weights they are `torch.nn.Linear`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from idc_core.models.onnx.registry import Function, Node, operator, room


def _dense(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """Return a dense layer of a weight (outputs, inputs) and a bias (outputs)."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.clone(memory_format=torch.contiguous_format))
    if bias is not None:
        layer.bias = nn.Parameter(bias.clone())
    return layer


@operator("MatMul")
def _matmul(node: Node) -> nn.Module | Function:
    weight = node.constants.get(1)
    if 0 not in node.constants and weight is not None and weight.dim() == 2 and weight.is_floating_point():
        return _dense(weight.T, None)
    return _product


def _product(x: Tensor, y: Tensor) -> Tensor:
    if x.dim() > 1 and y.dim() > 1:
        room((*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]))
    return torch.matmul(x, y)


@operator("Gemm")
def _gemm(node: Node) -> nn.Module | Function:
    alpha: float = node.get("alpha", 1.0)
    beta: float = node.get("beta", 1.0)
    node.get("broadcast")
    turn_a, turn_b = node.get("transA", 0), node.get("transB", 0)
    weight, offset = node.constants.get(1), node.constants.get(2)
    outputs = 0 if weight is None or weight.dim() != 2 else weight.shape[0 if turn_b else 1]
    fits = offset is None or (offset.numel() in (1, outputs) and offset.shape[-1:] in ((), (1,), (outputs,)))
    if outputs and weight is not None and not turn_a and node.known(2) and 0 not in node.constants and fits:
        bias = None if offset is None else (offset.flatten() * beta).expand(outputs)
        return _dense((weight if turn_b else weight.T) * alpha, bias)

    def run(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        product = _product(a.T if turn_a else a, b.T if turn_b else b) * alpha
        return product if c is None else product + c * beta

    return run


@operator("Einsum")
def _einsum(node: Node) -> Function:
    equation = node.need("equation")

    def run(*values: Tensor) -> Tensor:
        if len(values) > 1:
            terms, _, result = equation.replace(" ", "").partition("->")
            sizes = {
                letter: size
                for term, value in zip(terms.split(","), values, strict=True)
                for letter, size in zip(term.replace("...", ""), value.shape, strict=False)
            }
            room([sizes.get(letter, 1) for letter in result])
        return torch.einsum(equation, *values)

    return run
