"""Linear models of scikit-learn, which ONNX has operators of its own for, as the dense layers that they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, helper, numpy_helper

from idc_core.errors import ModelError, UnsupportedOperationError

DOMAIN = "ai.onnx.ml"
_ENDS = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid", "NONE": ""}
"""Transforms of scores by their names in the file: operators of ONNX itself."""


def make_dense(graph: GraphProto, where: str) -> tuple[str, ...]:
    """Put dense layers in place of linear models, without their labels; return what was left out at the end.

    That is the softmax or sigmoid of a model whose scores are the network's. One with scores -x and x, whose sigmoids
    are the probabilities, gets -x/2 and x/2 there: their softmax are the same probabilities.

    Raises
    ------
    ModelError
        If the numbers of weights do not fit each other.
    UnsupportedOperationError
        If the transform of the scores is another one than softmax or sigmoid.
    """
    remarks: tuple[str, ...] = ()
    nodes: list[NodeProto] = []
    ends, users = {one.name for one in graph.output}, defaultdict[str, list[NodeProto]](list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
    for node in graph.node:
        nodes.append(node)
        if node.domain != DOMAIN or node.op_type not in ("LinearClassifier", "LinearRegressor"):
            continue
        label = f"{where}: node {node.name!r} ({node.op_type})"
        if len(node.input) != 1 or len(node.output) != (2 if node.op_type == "LinearClassifier" else 1):
            raise ModelError(f"{label} has {len(node.input)} inputs and {len(node.output)} outputs.")
        weight, bias = _weights(node, label)
        end, scores = _end(node, label), node.output[-1]
        followers = _followers(scores, ends, users)
        if end and followers is None:
            nodes.append(helper.make_node(end, [f"{scores}/linear"], [scores], f"{node.name}/{end}"))
            scores = f"{scores}/linear"
        elif end:
            remarks += (f"The {end.lower()} at its end is left out: scores before it are analysed.",)
            for one in followers or ():  # what divides by the sum
                _clear(one, "Identity")
            if end == "Sigmoid" and len(weight) == 2 and np.array_equal(weight[0], -weight[1]):
                weight, bias = weight * np.float32(0.5), bias * np.float32(0.5)
        _replace(graph, node, weight, bias, scores)
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
    return remarks


def _followers(scores: str, ends: set[str], users: Mapping[str, list[NodeProto]]) -> list[NodeProto] | None:
    """Return the Normalizers between scores and the end of the network; None where other nodes use them as well."""
    followers: list[NodeProto] = []
    while scores not in ends:
        after = users.get(scores, [])
        if len(after) != 1 or after[0].op_type not in ("Normalizer", "ZipMap") or len(after[0].output) != 1:
            return None
        if len(followers) > 1:
            return None  # scikit-learn writes one of each
        followers.append(after[0])
        scores = after[0].output[0]
    return [node for node in followers if node.op_type == "Normalizer"]


def _weights(node: NodeProto, label: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the weight (outputs, inputs) and the bias (outputs,) of a linear model."""
    floats = {attribute.name: np.array(attribute.floats, np.float32) for attribute in node.attribute}
    labels = max((len(attribute.ints) + len(attribute.strings) for attribute in node.attribute), default=0)
    values, bias = (floats.get(name, np.zeros(0, np.float32)) for name in ("coefficients", "intercepts"))
    outputs = len(bias) or labels or 1
    if not len(values) or len(values) % outputs:
        raise ModelError(f"{label} has {len(values):,} coefficients for {outputs:,} outputs; expected a multiple.")
    return values.reshape(outputs, -1), bias if len(bias) else np.zeros(outputs, np.float32)


def _end(node: NodeProto, label: str) -> str:
    """Return what a linear model does to its scores, as a word; empty for nothing."""
    transforms = [
        attribute.s.decode("utf-8", "replace") for attribute in node.attribute if attribute.name == "post_transform"
    ]
    name = transforms[0] if transforms else "NONE"
    if name not in _ENDS:
        raise UnsupportedOperationError(f"{label} uses the transform {name!r:.40}, which is not supported.")
    return _ENDS[name]


def _replace(
    graph: GraphProto, node: NodeProto, weight: NDArray[np.float32], bias: NDArray[np.float32], scores: str
) -> None:
    """Make a node a dense layer with these weights that gives the scores."""
    names = [f"{scores}/{part}" for part in ("weight", "bias")]
    for name, values in zip(names, (weight, bias), strict=True):
        graph.initializer.append(numpy_helper.from_array(values, name))
    _clear(node, "Gemm")
    node.input.extend(names)
    node.attribute.append(helper.make_attribute("transB", 1))
    del node.output[:]
    node.output.append(scores)


def _clear(node: NodeProto, operator: str) -> None:
    """Give a node another operator of ONNX itself, without attributes."""
    node.domain, node.op_type = "", operator
    del node.attribute[:]
