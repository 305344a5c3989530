"""Class-level errors without labels (DeepInspect): which classes a network confuses, and between which it is unfair."""

from idc_core.confusion.activation import ActivationCounts, activation_probability, count_again
from idc_core.confusion.bias import Triplet, average_bias, most_biased, near_cutoff, third_classes
from idc_core.confusion.distance import class_distance
from idc_core.confusion.evaluation import (
    Curve,
    Evaluation,
    Reported,
    cost_effectiveness,
    cutoff,
    evaluate,
    suspects,
)
from idc_core.confusion.statistics import Statistics, collect_statistics
from idc_core.confusion.truth import average_disparity, pair_confusion, type1_confusion, type2_confusion

__all__ = [
    "ActivationCounts",
    "Curve",
    "Evaluation",
    "Reported",
    "Statistics",
    "Triplet",
    "activation_probability",
    "average_bias",
    "average_disparity",
    "class_distance",
    "collect_statistics",
    "cost_effectiveness",
    "count_again",
    "cutoff",
    "evaluate",
    "most_biased",
    "near_cutoff",
    "pair_confusion",
    "suspects",
    "third_classes",
    "type1_confusion",
    "type2_confusion",
]
