"""How well a score that saw no labels finds the pairs of classes that labels prove confused, or treated unequally."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.base.statistics import spearman
from idc_core.confusion.ground_truth import Floats, Form, Ints, check_form
from idc_core.errors import DataError, SettingError

_Errors = Literal["low", "high"]

_POINTS = 40
"""Shares of pairs at which the published program takes the curve."""

_DRAWN = 500
"""Points of a curve at most."""


@dataclass(frozen=True)
class Reported:
    """The pairs that a cut-off reports, compared with the truth; precision and recall are NaN where undefined."""

    reported: int
    true_positives: int
    false_positives: int
    precision: float
    recall: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A score of pairs of classes compared with the truth.

    `undefined` pairs are left out because score or truth is undefined; `true_pairs` are beyond the truth's cut-off.
    Reported are the pairs beyond the score's cut-off, and as large a share of the worst ones. `spearman` is NaN where
    score or truth is constant. `gain` is the area under the cost-effectiveness curve relative to a random order's,
    `optimal_gain` that of the best order; NaN where no pair is true. `gain_at_points` has 40 points by the trapezoid
    rule, as published for bias; `gain_artefact` their sum with both ends in full, as published for confusion.
    """

    pairs: int
    undefined: int
    true_pairs: int
    score_cutoff: float
    truth_cutoff: float
    at_deviations: Reported
    at_share: Reported
    spearman: float
    gain: float
    optimal_gain: float
    gain_at_points: float
    gain_artefact: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Share of the true pairs that is found, the most suspicious pairs inspected first: float64 (k,) each.

    `optimal` is the best possible order; a random order finds the share it inspects.
    """

    inspected: Floats
    found: Floats
    optimal: Floats


def suspects(score: NDArray[np.floating], errors: _Errors = "low") -> Ints:
    """Return the defined pairs of classes from most to least suspicious, int64 (pairs, 2), smaller class first.

    Small scores are suspicious for `errors` "low" (distance), large ones for "high" (bias).
    """
    rows, columns = np.triu_indices(len(score), 1)
    values = _directed(np.asarray(score, np.float64)[rows, columns], errors)
    order = np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]
    return np.stack([rows[order], columns[order]], axis=1).astype(np.int64)


def cutoff(score: NDArray[np.floating], errors: _Errors = "low", deviations: float = 1.0) -> float:
    """Return mean less (low) or plus (high) so many population standard deviations of the defined pairs."""
    values = np.asarray(score, np.float64)[np.triu_indices(len(score), 1)]
    values = values[np.isfinite(values)]
    if not len(values):
        raise DataError("No pair of classes has a score: expected at least two classes that are predicted.")
    return float(values.mean() + (deviations if errors == "high" else -deviations) * values.std())


def evaluate(
    score: NDArray[np.floating],
    truth: NDArray[np.floating],
    errors: _Errors = "low",
    form: Form = "equation",
    *,
    deviations: float = 1.0,
    share: float = 0.01,
) -> Evaluation:
    """Compare a score of pairs of classes with the truth, both (classes, classes), symmetric, NaN where undefined.

    The score is a distance, where "low" `errors` are suspicious, or a bias ("high"); the truth is pair confusion or
    average disparity from labels. `deviations` are population standard deviations of both cut-offs; `share`, 0..1, is
    that of the worst pairs that `at_share` reports. Raises DataError if the shapes differ or no pair is defined in
    both, SettingError for a setting outside its range.

    Notes
    -----
    Tian et al., ICSE 2020, section 4. Of P pairs the share reports ``floor(P share)`` for a distance and
    ``ceil(P share)`` for a bias, as the published program does. ``form="artefact"`` reproduces its way from a bias's
    cut-off to the number of pairs by a percentile, in the arithmetic of scipy 1.4: the paper's table IV.
    """
    check_form(form)
    if errors not in ("low", "high") or deviations < 0 or not 0 <= share <= 1:
        raise SettingError(
            f"Expected errors 'low' or 'high', deviations of 0 or more and a share in 0..1; got {errors!r}, "
            f"{deviations!r}, {share!r}."
        )
    values, facts, undefined = _pairs(score, truth)
    pairs = len(values)
    limit = values.mean() + (deviations if errors == "high" else -deviations) * values.std()
    fact_limit = facts.mean() + deviations * facts.std()
    order = np.argsort(_directed(values, errors), kind="stable")
    if form == "artefact" and errors == "high":
        true = np.zeros(pairs, bool)
        true[np.argsort(-facts, kind="stable")[: _by_percentile(facts, fact_limit)]] = True
        beyond = _by_percentile(values, limit)
    else:
        true = facts > fact_limit
        beyond = int(np.count_nonzero(values > limit if errors == "high" else values < limit))
    worst = int(np.ceil(share * pairs)) if errors == "high" else int(np.floor(share * pairs))
    hits = np.concatenate([[0], np.cumsum(true[order])])
    ideal = np.concatenate([[0], np.cumsum(np.sort(true)[::-1])])
    places = _places(pairs, errors)
    return Evaluation(
        pairs=pairs,
        undefined=undefined,
        true_pairs=int(true.sum()),
        score_cutoff=float(limit),
        truth_cutoff=float(fact_limit),
        at_deviations=_reported(hits, beyond),
        at_share=_reported(hits, worst),
        spearman=float(spearman(np.stack([values, facts]))[0, 1]),
        gain=_gain(hits),
        optimal_gain=_gain(ideal),
        gain_at_points=_gain_at(hits, places),
        gain_artefact=_gain_summed(hits, places),
    )


def cost_effectiveness(
    score: NDArray[np.floating], truth: NDArray[np.floating], errors: _Errors = "low", deviations: float = 1.0
) -> Curve:
    """Return the cost-effectiveness curve at `_DRAWN` points at most; parameters and errors as `evaluate`."""
    values, facts, _ = _pairs(score, truth)
    true = facts > facts.mean() + deviations * facts.std()
    order = np.argsort(_directed(values, errors), kind="stable")
    pairs, all_true = len(values), int(true.sum())
    steps = np.unique(np.linspace(0, pairs, min(_DRAWN, pairs + 1)).round().astype(np.int64))
    hits = np.concatenate([[0], np.cumsum(true[order])])[steps]
    optimal = np.minimum(steps, all_true)
    part = max(1, all_true)
    return Curve(steps / pairs, hits / part, optimal / part)


def _pairs(score: NDArray[np.floating], truth: NDArray[np.floating]) -> tuple[Floats, Floats, int]:
    scores, facts = np.asarray(score, np.float64), np.asarray(truth, np.float64)
    if scores.shape != facts.shape or scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise DataError(
            f"Expected score and truth for every two classes; found shapes {scores.shape} and {facts.shape}."
        )
    upper = np.triu_indices(len(scores), 1)
    values, right = scores[upper], facts[upper]
    there = np.isfinite(values) & np.isfinite(right)
    if not there.any():
        raise DataError("No pair of classes has both a score and a truth; expected at least one.")
    return values[there], right[there], int((~there).sum())


def _directed(values: Floats, errors: _Errors) -> Floats:
    """Return values of which the smallest is the most suspicious; NaN sorts last either way."""
    return -values if errors == "high" else values


def _by_percentile(values: Floats, limit: float) -> int:
    """Return the number of values beyond a limit as the published program finds it: by way of its percentile."""
    left, right = int(np.count_nonzero(values < limit)), int(np.count_nonzero(values <= limit))
    percentile = (right + left + (1 if right > left else 0)) * 50.0 / len(values)
    return int(np.ceil(len(values) * (1 - percentile / 100)))


def _reported(found: Ints, reported: int) -> Reported:
    hits, true = int(found[reported]), int(found[-1])
    return Reported(
        reported,
        hits,
        reported - hits,
        hits / reported if reported else float("nan"),
        hits / true if true else float("nan"),
    )


def _gain(found: Ints) -> float:
    """Return the area over all pairs by the trapezoid rule, against a random order's."""
    if not found[-1]:
        return float("nan")
    recall = found / found[-1]
    area = (recall.sum() - (recall[0] + recall[-1]) / 2) / (len(recall) - 1)
    return float(area / 0.5 - 1)


def _places(pairs: int, errors: _Errors) -> Ints:
    shares = np.linspace(0, 1, _POINTS) * pairs
    return (np.ceil(shares) if errors == "high" else np.floor(shares)).astype(np.int64)


def _gain_at(found: Ints, places: Ints) -> float:
    if not found[-1]:
        return float("nan")
    area = np.trapezoid(found[places] / found[-1], dx=1 / (_POINTS - 1))
    return float(area / 0.5 - 1)


def _gain_summed(found: Ints, places: Ints) -> float:
    if not found[-1]:
        return float("nan")
    random = np.linspace(0, 1, _POINTS).sum() / (_POINTS - 1)
    return float((found[places] / found[-1]).sum() / (_POINTS - 1) / random - 1)
