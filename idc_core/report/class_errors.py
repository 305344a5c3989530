"""Errors between classes: which are confused, how surely, and which are classified worst."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.certainty import PairCounts
from idc_core.confusion.evaluation import cutoff, suspects
from idc_core.confusion.findings import most_confused, pair_finding
from idc_core.confusion.ground_truth import inputs_behind, pair_confusion, type1_confusion
from idc_core.confusion.matrix import share_interval
from idc_core.confusion.verdicts import Verdicts, judge
from idc_core.evidence.finding import Verdict
from idc_core.report.bounds import CLASSES, LONGEST_NAME, PAIRS, cut
from idc_core.report.content import ClassAccuracy, ClassErrors, ConfusedPair, Statement
from idc_core.report.material import Material

_MOST_CLASSES = 1_000
"""Classes of which every two are compared."""


def find_class_errors(material: Material) -> ClassErrors:
    """Return the confused pairs and the least accurate classes of the tests that are looked at."""
    names, correct = material.test.class_names, material.correct
    if correct is None:
        why = "The target is a number: there are no classes." if not names else "The tests' classes are not the "
        return ClassErrors(why + ("" if not names else "network's."), None, 0, 0, None, (), ())
    chosen = material.chosen
    true, predicted = material.test.targets[chosen], material.analysis.predictions[chosen]
    worst = _least_accurate(names, true, correct[chosen])
    if len(names) > _MOST_CLASSES:
        why = f"Pairs of {len(names):,} classes are not compared; up to {_MOST_CLASSES:,} classes are."
        return ClassErrors(why, None, 0, 0, None, (), worst)
    directional, inputs = type1_confusion(true, predicted, len(names)), inputs_behind(true, len(names))
    counts = PairCounts.of(directional, inputs)
    limit, pairs, verdicts = _judged(directional, inputs)
    most = most_confused(names, counts)
    listed = tuple(
        _pair(names, counts, (int(first), int(second)), verdicts, place)
        for place, (first, second) in enumerate(pairs[:PAIRS].tolist())
    )
    certain = int(counts.certain(pairs[verdicts.confirmed]).sum())
    finding = None if most is None else Statement.of(most)
    return ClassErrors("", limit, len(pairs), certain, finding, listed, worst)


def _judged(
    directional: NDArray[np.float64], inputs: NDArray[np.float64]
) -> tuple[float | None, NDArray[np.int64], Verdicts]:
    """Return above which rate a pair counts as confused, the pairs that ever are, and what labels say of them."""
    confusion = pair_confusion(directional)
    known = bool(np.isfinite(confusion).any())
    limit = cutoff(confusion, "high") if known else None
    pairs = suspects(confusion, "high")
    pairs = pairs[confusion[pairs[:, 0], pairs[:, 1]] > 0]
    return limit, pairs, judge(directional, inputs, pairs, limit or 0.0)


def _pair(
    names: tuple[str, ...], counts: PairCounts, pair: tuple[int, int], found: Verdicts, place: int
) -> ConfusedPair:
    """Return a pair as the report lists it."""
    finding = pair_finding(names, counts, pair)
    if finding is None:
        verdict = "no other pair"
    elif finding.verdict is Verdict.STANDS_OUT:
        verdict = "truly confused" if found.confirmed[place] else "above the others"
    else:
        verdict = str(finding.verdict)
    return ConfusedPair(
        first=cut(names[pair[0]], LONGEST_NAME),
        second=cut(names[pair[1]], LONGEST_NAME),
        confused=int(found.confused[place]),
        inputs=int(found.inputs[place]),
        expected=None if finding is None else finding.control.value,
        rate=float(found.rate[place]),
        low=float(found.low[place]),
        high=float(found.high[place]),
        verdict=verdict,
    )


def _least_accurate(
    names: tuple[str, ...], true: NDArray[np.int64], correct: NDArray[np.bool_]
) -> tuple[ClassAccuracy, ...]:
    inputs = np.bincount(true, minlength=len(names))
    right = np.bincount(true, weights=correct, minlength=len(names))
    there = np.flatnonzero(inputs)
    share = right[there] / inputs[there]
    low, high = share_interval(right[there].astype(np.int64), inputs[there])
    return tuple(
        ClassAccuracy(
            name=cut(names[there[row]], LONGEST_NAME),
            correct=int(right[there[row]]),
            inputs=int(inputs[there[row]]),
            share=float(share[row]),
            low=float(low[row]),
            high=float(high[row]),
        )
        for row in np.lexsort((-inputs[there], share))[:CLASSES]
    )
