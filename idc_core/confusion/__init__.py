"""Class-level errors without labels (DeepInspect): which classes a network confuses, and between which it is unfair."""

from idc_core.confusion.baselines import ByChance, ToldApart, by_chance, coincidence, told_apart, weight_distance
from idc_core.confusion.bias import Triplet, average_bias, most_biased, near_cutoff, third_classes
from idc_core.confusion.certainty import PairCounts
from idc_core.confusion.disparity import Disparity
from idc_core.confusion.distance import class_distance
from idc_core.confusion.evaluation import Curve, Evaluation, Reported, cost_effectiveness, cutoff, evaluate, suspects
from idc_core.confusion.evidence import Evidence, counted_evidence, grouped_names, network_evidence, parse_groups
from idc_core.confusion.ground_truth import average_disparity, pair_confusion, type1_confusion, type2_confusion
from idc_core.confusion.matrix import ClassTable, Shares, class_table
from idc_core.confusion.predictions_file import own_evidence
from idc_core.confusion.probability_matrix import ActivationCounts, activation_probability, count_again
from idc_core.confusion.report import ClassErrors, find_errors
from idc_core.confusion.scaled_activation import Statistics, collect_statistics
from idc_core.confusion.verdicts import Verdicts
from idc_core.tracing.neurons import countable_layers

__all__ = [
    "ActivationCounts",
    "ByChance",
    "ClassErrors",
    "ClassTable",
    "Curve",
    "Disparity",
    "Evaluation",
    "Evidence",
    "PairCounts",
    "Reported",
    "Shares",
    "Statistics",
    "ToldApart",
    "Triplet",
    "Verdicts",
    "activation_probability",
    "average_bias",
    "average_disparity",
    "by_chance",
    "class_distance",
    "class_table",
    "coincidence",
    "collect_statistics",
    "cost_effectiveness",
    "count_again",
    "countable_layers",
    "counted_evidence",
    "cutoff",
    "evaluate",
    "find_errors",
    "grouped_names",
    "most_biased",
    "near_cutoff",
    "network_evidence",
    "own_evidence",
    "pair_confusion",
    "parse_groups",
    "suspects",
    "third_classes",
    "told_apart",
    "type1_confusion",
    "type2_confusion",
    "weight_distance",
]
