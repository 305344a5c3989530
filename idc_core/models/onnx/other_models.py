"""Models in ONNX files that are no neural networks, told by operators that only they have."""

from __future__ import annotations

from onnx import GraphProto

from idc_core.errors import UnsupportedOperationError
from idc_core.models.onnx.linear_models import DOMAIN

_KINDS = {
    "TreeEnsemble": "a decision tree, or a forest or boosting of trees",
    "TreeEnsembleClassifier": "a decision tree, or a forest or boosting of trees",
    "TreeEnsembleRegressor": "a decision tree, or a forest or boosting of trees",
    "SVMClassifier": "a support vector machine",
    "SVMRegressor": "a support vector machine",
    "CDist": "a model of distances to training inputs (nearest neighbours, a Gaussian process)",
    "ArrayFeatureExtractor": "a model of distances to training inputs (nearest neighbours)",
}
"""Operators of models that have no neurons, in the domains of scikit-learn's models and of onnxruntime."""


def refuse_others(graph: GraphProto, where: str) -> None:
    """Raise UnsupportedOperationError where a graph is no neural network."""
    used = {node.op_type for node in graph.node if node.domain in (DOMAIN, "com.microsoft")}
    kind = next((operator for operator in _KINDS if operator in used), None)
    if kind is None or (kind == "ArrayFeatureExtractor" and not _is_far(graph)):
        return
    raise UnsupportedOperationError(
        f"{where} is not a neural network: it is {_KINDS[kind]} ({kind}), which has no neurons to analyse. Neural "
        "networks and linear models can be analysed, such as MLPClassifier and LogisticRegression of scikit-learn."
    )


def _is_far(graph: GraphProto) -> bool:
    """Whether the nearest of something are chosen; labels of classes are looked up by the same operator."""
    return any(node.op_type == "TopK" for node in graph.node)
