"""Mistakes that scores show: probabilities, classes in another order or never predicted, chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from idc_core.analysis.checking.detectors import classification, detector, finite_scores, varied
from idc_core.analysis.checking.evidence import Evidence, confusion, kappa, rises_by_chance
from idc_core.analysis.checking.findings import listed
from idc_core.models.class_order import names_option
from idc_core.models.wrapping import all_outputs

_SLACK = 1e-3
"""Room for rounding in sums of probabilities."""

_FITS, _GAIN, _CHANCE = 0.6, 0.1, 1e-4
"""With its classes in another order a network must reach this accuracy, gain this much, and not by chance."""

_NONE_BY_CHANCE = 1e-6
"""A class counts as never predicted where its tests would give no prediction of it with this probability at most."""

_LITTLE = 0.15
"""Kappa below which predictions hardly depend on the inputs."""


def _probabilities(scores: NDArray[np.float32]) -> str:
    """Return what scores are the result of, "softmax", "log-softmax" or "sigmoid"; empty where they may be scores."""
    if scores.shape[1] < 2 or not np.isfinite(scores).all():
        return ""
    if (scores <= 0).all() and np.abs(np.exp(scores.astype(np.float64)).sum(1) - 1).max() <= _SLACK:
        return "log-softmax"
    if (scores < 0).any() or (scores > 1).any():
        return ""
    return "softmax" if np.abs(scores.sum(1) - 1).max() <= _SLACK else "sigmoid"


@detector("softmax", "probabilities instead of scores", classification, finite_scores, varied)
def _find_probabilities(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find a softmax, log-softmax or sigmoid at the end that the engine does not see."""
    what = _probabilities(evidence.scores)
    if not what and (seen := _probabilities(evidence.raw)):
        evidence.notes.append(f"The network ends in a {seen}; scores before it are analysed.")
    if what:
        scores = evidence.scores
        logs = what == "log-softmax"
        sums = np.exp(scores).sum(1) if logs else scores.sum(1)
        text = f"their {'exponentials' if logs else 'values'} sum to {sums.min():.3g}..{sums.max():.3g}"
        yield (
            f"Scores lie in {scores.min():.3g}..{scores.max():.3g} and {text} per test: a {what} was already applied.",
            evidence.remedy(
                f"Return the scores before the {what} from the network's forward.",
                f"Save the network again without the {what} at its end.",
            )
            + " Relevance starts from scores, which can also be against a class.",
        )


@detector("outputs", "accuracy over outputs that are no classes of the data", classification, finite_scores)
def _note_outputs(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Note the accuracy over all outputs of a network that has more of them than its data have classes."""
    with all_outputs(evidence.model) as kept:
        every = None if kept is None else evidence.scores_of(evidence.inputs)
    classes = evidence.scores.shape[1]
    if kept is not None and every is not None and every.shape[1] > classes:
        targets = evidence.targets.astype(np.int64)
        shares = (every.argmax(1) == np.array(kept)[targets], evidence.scores.argmax(1) == targets)
        over_all, over_classes = (f"{100 * share.mean():.1f} %" for share in shares)
        evidence.notes.append(
            f"Accuracy is {over_all} over all {every.shape[1]:,} outputs and {over_classes} over those of the data's "
            f"{classes:,} classes, on {len(targets):,} tests."
        )
    yield from ()


@detector("class-order", "classes in another order", classification, finite_scores, varied)
def _find_order(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Fit names of classes to predictions of training inputs, and see whether tests are predicted better with them."""
    from scipy.optimize import linear_sum_assignment

    names, targets = evidence.test.class_names, evidence.targets.astype(np.int64)
    table = confusion(evidence.training_targets.astype(np.int64), evidence.training_scores.argmax(1), len(names))
    meant = np.asarray(linear_sum_assignment(-(table + 1e-3 * np.eye(len(names))).T)[1])  # of each output
    right, predicted = evidence.scores.argmax(1) == targets, meant[evidence.scores.argmax(1)] == targets
    if predicted.mean() < max(_FITS, right.mean() + _GAIN):
        return
    if rises_by_chance(int((predicted & ~right).sum()), int((right & ~predicted).sum())) > _CHANCE:
        return
    moved = [f"output {output} is {names[name]!r}" for output, name in enumerate(meant) if output != name]
    order = listed([names[name] for name in meant], 12)
    yield (
        f"Accuracy is {100 * right.mean():.1f} %, and {100 * predicted.mean():.1f} % with the classes in another "
        f"order: {listed(moved, 4)}.",
        f"Name the classes in the order of the network's outputs ({order}), or number the targets in that order."
        + evidence.remedy("", f" Or give the network with {names_option([names[name] for name in meant])}."),
    )


@detector("never-predicted", "classes that are never predicted", classification, finite_scores, varied)
def _find_never_predicted(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find classes with many tests that the network never predicts, although it predicts others well."""
    targets, predicted = evidence.targets.astype(np.int64), evidence.scores.argmax(1)
    classes = evidence.scores.shape[1]
    if evidence.has_found("class-order", "inputs") or kappa(targets, predicted, classes) < _LITTLE:
        return
    accuracy = float((predicted == targets).mean())
    counts = np.bincount(targets, minlength=classes)
    never = [label for label in range(classes) if counts[label] and label not in predicted]
    missed = [label for label in never if (1 - accuracy) ** int(counts[label]) <= _NONE_BY_CHANCE]
    if missed:
        names = [f"{evidence.test.class_names[label]} ({counts[label]} tests)" for label in missed]
        yield (
            f"Never predicted on {len(targets)} tests: {listed(names)}.",
            "Check that the network was trained on this class, and that the class has an output of its own.",
        )


@detector("chance", "predictions no better than chance", finite_scores, varied)
def _find_chance(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Find a network that predicts no better than without inputs, where nothing found so far explains it."""
    if evidence.has_found("inputs", "class-order", "weights", "batch-norm", "random", "dead"):
        return
    remedy = "Check that trained weights are loaded and that inputs are prepared as in training. {}"
    if classification(evidence):
        targets, predicted = evidence.targets.astype(np.int64), evidence.scores.argmax(1)
        value = kappa(targets, predicted, evidence.scores.shape[1])
        if value >= _LITTLE:
            return
        accuracy, common = float((predicted == targets).mean()), np.bincount(targets).max() / len(targets)
        yield (
            f"Accuracy is {100 * accuracy:.1f} %, Cohen's kappa {value:.2f} (0 is chance); always the most frequent "
            f"class is {100 * common:.1f} %.",
            remedy.format("No other scale, order of channels or classes was found that predicts better."),
        )
        return
    error, deviation = float(np.sqrt(((evidence.scores[:, 0] - evidence.targets) ** 2).mean())), evidence.targets.std()
    if error >= deviation > 0:
        yield (
            f"The RMSE is {error:.4g}; always predicting the mean of the targets gives {deviation:.4g}.",
            remedy.format("Check that targets have the unit and scale of training."),
        )
