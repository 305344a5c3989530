"""How much more unequally two classes are confused with third ones than two whose rates are equal would seem to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.ground_truth import Floats, Ints

_DRAWS = 300
"""Test sets drawn for each strength of inequality."""

_NULL_DRAWS = 1000
"""Test sets drawn with equal rates: of these a probability is told."""

_STRENGTHS = np.concatenate([np.arange(0.0, 1.01, 0.125), np.arange(1.25, 3.01, 0.25)])
"""How strong the inequality is in what is drawn: 0 are equal rates, 1 the observed ones."""


@dataclass(frozen=True)
class Disparity:
    """A pair's disparity beside that of equal rates, all 0..1.

    `confused` inputs of the two classes and of third ones are predicted as one another. `expected` is the mean
    disparity of test sets of the same sizes with equal rates, `expected_low` to `expected_high` hold 95 % of them. The
    excess `value` - `expected` has the 95 % interval `low` to `high`. `p` is twice the probability of one as far above
    by chance, since either side counts as the interval does; `least_p` is the smallest that can be told.
    """

    confused: int
    value: float
    expected: float
    expected_low: float
    expected_high: float
    low: float
    high: float
    p: float
    least_p: float


def judge_disparity(
    directional: NDArray[np.floating], inputs: NDArray[np.floating], pair: tuple[int, int], seed: int = 0
) -> Disparity | None:
    """Compare a pair's disparity with that of equal rates; None where it is undefined or no input is confused.

    Arguments as `judge`.

    Notes
    -----
    A mean of absolute differences lies above 0 where all rates are equal. So test sets of the same sizes are drawn
    with rates between equal ones (those of both classes together) and beyond the observed ones, each direction from a
    binomial distribution. The interval of the excess holds those strengths of inequality with which the observed
    disparity is within 95 % of the drawn ones; with equal rates its mean is 0.
    """
    shares, trials, known = _third_classes(directional, inputs, pair)
    confused = (shares * trials).round().astype(np.int64)
    parts = known.sum(0)
    defined = int((parts > 0).all(0).sum())
    # Third classes that are never confused with either differ by 0 in every draw.
    some = (parts > 0).all(0) & (confused.sum((0, 1)) > 0)
    if not some.any():
        return None
    shares, trials, known, parts = shares[..., some], trials[..., some], known[..., some], parts[..., some]

    def mean(rates: Floats) -> Floats:
        """Return the disparity of rates (..., directions, 2, third classes)."""
        confusion = np.where(known, rates, 0.0).sum(-3) / parts
        means: Floats = np.abs(confusion[..., 0, :] - confusion[..., 1, :]).sum(-1) / defined
        return means

    counted = np.where(known, trials, 0).sum(1, keepdims=True)
    pooled = (shares * trials).sum(1, keepdims=True) / np.maximum(counted, 1)
    rates = pooled + _STRENGTHS[:, None, None, None] * (np.where(known, shares, pooled) - pooled)
    random = np.random.default_rng(seed)
    drawn = [
        mean(random.binomial(trials, one, (_DRAWS if strength else _NULL_DRAWS, *one.shape)) / trials)
        for strength, one in zip(_STRENGTHS, rates.clip(0.0, 1.0), strict=True)
    ]
    value = float(mean(shares))
    low, high, expected = _inverted(value, drawn)
    null = drawn[0]
    ends = np.quantile(null, [0.025, 0.975])
    least = 2 / (1 + len(null))
    p = min(1.0, least * (1 + np.count_nonzero(null >= value - 1e-12)))
    return Disparity(
        int(confused.sum()), value, expected, float(ends[0]), float(ends[1]), low, high, float(p), float(least)
    )


def _third_classes(
    directional: NDArray[np.floating], inputs: NDArray[np.floating], pair: tuple[int, int]
) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Return shares, inputs, and where there are any: (directions, 2, third classes), from the pair and to it."""
    ends = list(pair)
    others = np.setdiff1d(np.arange(len(directional)), ends)
    rates = np.stack([directional[ends][:, others], directional[:, ends].T[:, others]])
    sizes = np.stack([inputs[ends][:, others], inputs[:, ends].T[:, others]])
    known = np.isfinite(rates)
    return np.where(known, rates, 0.0), np.where(known, sizes, 1.0).round().astype(np.int64), known


def _inverted(value: float, drawn: list[Floats]) -> tuple[float, float, float]:
    """Return the ends of the interval of the excess, and the mean with equal rates.

    `drawn` are disparities for each of `_STRENGTHS`.
    """
    # Means and quantiles grow with the strength, but for what the draws add.
    bottom, top, mean = (
        np.maximum.accumulate([float(of(one)) for one in drawn])
        for of in (lambda one: np.quantile(one, 0.025), lambda one: np.quantile(one, 0.975), np.mean)
    )
    rising = np.arange(len(mean)) * 1e-12

    def at(curve: Floats) -> float:
        """Return the excess where a quantile is the observed disparity; below the one of equal rates, its distance."""
        if value <= curve[0]:
            return float(value - curve[0])
        return float(np.interp(value, curve + rising, mean) - mean[0])

    return at(top), max(at(bottom), at(top)), float(mean[0])
