"""Everything that evidence tells of class-level errors: distances, bias, and the truth beside them where known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.confusion.bias import average_bias
from idc_core.confusion.certainty import PairCounts
from idc_core.confusion.disparity import Disparity, judge_disparity
from idc_core.confusion.distance import class_distance
from idc_core.confusion.evaluation import Evaluation, cutoff, evaluate, suspects
from idc_core.confusion.evidence import Evidence
from idc_core.confusion.findings import disparity_finding, most_confused, pair_finding, report_finding
from idc_core.confusion.ground_truth import (
    Floats,
    Ints,
    average_disparity,
    count_classes,
    inputs_behind,
    pair_confusion,
    type1_confusion,
    type2_confusion,
)
from idc_core.confusion.probability_matrix import THRESHOLD, count_again
from idc_core.confusion.verdicts import Verdicts, judge
from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import Finding

Kind = Literal["type1", "type2"]


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Suspected and, with labels, true errors of every pair of classes; matrices are float64 (classes, classes).

    `images` (classes,) counts the inputs predicted as each class; None where only a probability matrix (neurons,
    classes) is known. A small `distance` suggests confusion, NaN for a class that no input is predicted as; a large
    `bias` suggests unequal treatment, None with fewer than three classes. From labels, else None: `confusion` by
    direction and by pair, `inputs` behind each direction, `disparity`, and the scores compared with them.
    """

    class_names: tuple[str, ...]
    threshold: float
    deviations: float
    images: Ints | None
    probability: NDArray[np.floating]
    distance: Floats
    bias: Floats | None
    directional: Floats | None
    inputs: Floats | None
    confusion: Floats | None
    disparity: Floats | None
    confusion_found: Evaluation | None
    bias_found: Evaluation | None

    @property
    def unseen(self) -> list[str]:
        """Names of the classes that no input is predicted as: nothing can be said of them."""
        return [
            name for name, own in zip(self.class_names, np.diag(self.distance), strict=True) if not np.isfinite(own)
        ]

    @cached_property
    def confusion_cutoff(self) -> float:
        """Distance below which a pair is reported."""
        return cutoff(self.distance, "low", self.deviations)

    @cached_property
    def suspicion(self) -> Floats:
        """By how many standard deviations each distance is below the mean of all pairs, (classes, classes)."""
        values = self.distance[np.triu_indices(len(self.distance), 1)]
        values = values[np.isfinite(values)]
        spread = float(values.std())
        if spread == 0:
            suspicion: Floats = np.zeros_like(self.distance)
            suspicion[~np.isfinite(self.distance)] = np.nan
        else:
            suspicion = (values.mean() - self.distance) / spread
        np.fill_diagonal(suspicion, np.nan)
        return suspicion

    @cached_property
    def suspected(self) -> Ints:
        """Pairs of classes from the most suspected of confusion on, int64 (pairs, 2)."""
        return suspects(self.distance, "low")

    @cached_property
    def biased(self) -> Ints:
        """Pairs of classes from the most suspected of unequal treatment on, int64 (pairs, 2)."""
        return np.zeros((0, 2), np.int64) if self.bias is None else suspects(self.bias, "high")

    def truly_confused(self, pairs: Ints) -> NDArray[np.bool_] | None:
        """Return whether labels show more confusion than the truth's cut-off, bool (k,); None without labels."""
        return _beyond(self.confusion, self.confusion_found, pairs)

    def truly_biased(self, pairs: Ints) -> NDArray[np.bool_] | None:
        """Return whether labels show more disparity than the truth's cut-off, bool (k,); None without labels."""
        return _beyond(self.disparity, self.bias_found, pairs)

    def verdicts(self, pairs: Ints) -> Verdicts | None:
        """Return how surely labels say that pairs (k, 2) are confused; None without labels."""
        if self.directional is None or self.inputs is None or self.confusion_found is None:
            return None
        return judge(self.directional, self.inputs, pairs, self.confusion_found.truth_cutoff)

    @cached_property
    def pair_counts(self) -> PairCounts | None:
        """How many inputs of each direction are confused; None without labels."""
        if self.directional is None or self.inputs is None or self.confusion_found is None:
            return None
        return PairCounts.of(self.directional, self.inputs)

    def certainly_confused(self, pairs: Ints) -> NDArray[np.bool_] | None:
        """Return whether pairs are `truly_confused`, and more than the others for certain, bool (k,); None w/o labels.

        Certain is what would be seen in at most one of twenty networks whose pairs are all confused alike, in any pair.
        """
        beyond, counts = self.truly_confused(pairs), self.pair_counts
        if beyond is None or counts is None:
            return None
        certain = np.zeros(len(pairs), bool)
        certain[beyond] = counts.certain(pairs[beyond])
        return certain

    def pair_finding(self, pair: tuple[int, int], noun: str = "test") -> Finding | None:
        """Return how a pair is confused beside the others; None without labels or other pairs."""
        counts = self.pair_counts
        return None if counts is None else pair_finding(self.class_names, counts, pair, noun)

    def most_confused(self, noun: str = "test") -> Finding | None:
        """Return the finding of the most confused pair; None without labels, confusion or other pairs."""
        counts = self.pair_counts
        return None if counts is None else most_confused(self.class_names, counts, noun)

    @cached_property
    def report_finding(self) -> Finding | None:
        """How many of the reported pairs are truly confused, beside as many random ones; None without labels."""
        certain = self.certainly_confused(self.suspected)
        if certain is None:
            return None
        there = np.isfinite(np.asarray(self.confusion)[tuple(self.suspected.T)])
        reported = self.distance[tuple(self.suspected.T)] < self.confusion_cutoff
        return report_finding(reported[there], certain[there])

    def disparity_of(self, pair: tuple[int, int]) -> Disparity | None:
        """Return a pair's disparity beside that of equal rates; None without labels, or where it is undefined."""
        if self.directional is None or self.inputs is None or self.bias_found is None:
            return None
        return judge_disparity(self.directional, self.inputs, pair)

    def disparity_finding(self, pair: tuple[int, int]) -> Finding | None:
        """Return the finding of a pair's disparity; None where there is none."""
        found = self.disparity_of(pair)
        return None if found is None else disparity_finding(self.class_names, found, pair)

    def shared_neurons(self, first: int, second: int, most: int = 20) -> Ints:
        """Return the neurons that both classes activate and the others do not, int64 (k,).

        Ranked by the smaller of the two probabilities, less the mean of the other classes.
        """
        both = np.minimum(self.probability[:, first], self.probability[:, second])
        order: Ints = np.argsort(self.others(first, second) - both, kind="stable")
        shared: Ints = order[both[order] > 0][:most]
        return shared

    def others(self, first: int, second: int) -> Floats:
        """Return how often the classes but two activate each neuron on average, float64 (neurons,); 0 without any."""
        known = np.flatnonzero(np.isfinite(np.diag(self.distance)))
        rest = self._total - self.probability[:, first] - self.probability[:, second]
        mean: Floats = np.maximum(rest, 0.0) / max(1, len(known) - 2)
        return mean if len(known) > 2 else np.zeros_like(mean)

    @cached_property
    def _total(self) -> Floats:
        total: Floats = np.nansum(self.probability, axis=1, dtype=np.float64)
        return total

    def apart_neurons(self, first: int, second: int, most: int = 20) -> Ints:
        """Return the neurons that tell the two classes apart most, int64 (k,): the largest terms of the distance."""
        gap = np.abs(self.probability[:, first] - self.probability[:, second])
        order: Ints = np.argsort(-gap, kind="stable")[:most]
        apart: Ints = order[gap[order] > 0]
        return apart


def find_errors(
    evidence: Evidence,
    threshold: float = THRESHOLD,
    *,
    normalise: bool = False,
    filtered: bool = True,
    kind: Kind | None = None,
    deviations: float = 1.0,
    share: float = 0.01,
    on_progress: Progress | None = None,
) -> ClassErrors:
    """Find suspected confusion and bias of all classes by the equations, and compare with labels where there are some.

    A neuron is active where its mean scaled output is strictly greater than `threshold`, 0..1 (unused for a probability
    matrix). `normalise` is as in `class_distance`, `filtered` as in `average_bias`, `deviations` and `share` as in
    `evaluate`, whose errors it raises. `kind` is the error type of the labels; default type 2 with several labels per
    input, else type 1. Raises SettingError for type 2 errors with one label per input, DataError where fewer than two
    classes are predicted.
    """
    kind = kind or ("type2" if evidence.several_labels else "type1")
    if kind == "type2" and not evidence.several_labels:
        raise SettingError("Type 2 errors need several labels per input; with one label, confusion is of type 1.")
    images, probability = _counted(evidence, threshold)
    distance = class_distance(probability, normalise)
    defined = int(np.isfinite(np.diag(distance)).sum())
    if defined < 2:
        raise DataError(f"Expected inputs predicted as two or more classes; there is {defined}.")
    bias = average_bias(distance, filtered=filtered, on_progress=on_progress) if defined > 2 else None
    directional = inputs = confusion = disparity = None
    if evidence.true is not None and evidence.predicted is not None:
        directional = (
            type1_confusion(evidence.true, evidence.predicted, len(evidence.class_names))
            if kind == "type1"
            else type2_confusion(evidence.true, evidence.predicted)
        )
        inputs = inputs_behind(evidence.true, len(evidence.class_names))
        confusion = pair_confusion(directional)
        disparity = average_disparity(directional) if len(distance) > 2 else None
    return ClassErrors(
        class_names=evidence.class_names,
        threshold=threshold,
        deviations=deviations,
        images=images,
        probability=probability,
        distance=distance,
        bias=bias,
        directional=directional,
        inputs=inputs,
        confusion=confusion,
        disparity=disparity,
        confusion_found=_compared(distance, confusion, "low", deviations, share),
        bias_found=_compared(bias, disparity, "high", deviations, share),
    )


def _counted(evidence: Evidence, threshold: float) -> tuple[Ints | None, NDArray[np.floating]]:
    """Return how many inputs each class has, where that is known, and the probability matrix."""
    classes = len(evidence.class_names)
    if evidence.probability is not None:
        images = None if evidence.predicted is None else count_classes(evidence.predicted, classes)
        return images, evidence.probability
    values, predicted = np.asarray(evidence.values), np.asarray(evidence.predicted)
    counts = count_again(values, predicted, classes, threshold)
    return counts.images, counts.probability


def _compared(
    score: Floats | None, truth: Floats | None, errors: Literal["low", "high"], deviations: float, share: float
) -> Evaluation | None:
    if score is None or truth is None or not np.isfinite((score + truth)[np.triu_indices(len(score), 1)]).any():
        return None
    return evaluate(score, truth, errors, deviations=deviations, share=share)


def _beyond(truth: Floats | None, found: Evaluation | None, pairs: Ints) -> NDArray[np.bool_] | None:
    if truth is None or found is None:
        return None
    beyond: NDArray[np.bool_] = truth[pairs[:, 0], pairs[:, 1]] > found.truth_cutoff
    return beyond
