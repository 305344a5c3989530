"""What labels say of pairs of classes, and how surely: counts, intervals, and the cut-off of a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.ground_truth import Floats, Ints

_NORMAL = 1.959963984540054
"""Standard deviations of a normal distribution that hold 95 % of it."""

_DRAWS = 400
"""Resampled test sets behind the interval of a disparity."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What labels say of some pairs of classes; every array is (pairs,).

    `confused` of the `inputs` of the two classes are predicted as the other one. `rate` is the pair's confusion, 0..1,
    `low` and `high` its 95 % interval, `cutoff` what the rates of truly confused pairs exceed.
    """

    confused: Ints
    inputs: Ints
    rate: Floats
    low: Floats
    high: Floats
    cutoff: float

    @property
    def confirmed(self) -> NDArray[np.bool_]:
        """Whether the rate is above the cut-off, as published."""
        return np.asarray(self.rate > self.cutoff)

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Whether the whole interval is on one side of the cut-off."""
        return np.asarray((self.low > self.cutoff) | (self.high < self.cutoff))


@dataclass(frozen=True)
class DisparityVerdict:
    """What is behind a pair's disparity.

    `confused` inputs of the two classes and of third ones are predicted as one another. `margin` is by how much the
    disparity may differ with other tests (95 %), NaN where it is undefined.
    """

    confused: int
    margin: float


def judge(directional: NDArray[np.floating], inputs: NDArray[np.floating], pairs: Ints, cutoff: float) -> Verdicts:
    """Return what labels say of pairs of classes (k, 2).

    Takes the confusion by direction and the inputs behind each, (classes, classes), as `type1_confusion` and
    `inputs_behind` return them.

    Notes
    -----
    Wilson's interval in each direction, and the two joined as those of a sum of two proportions (G. Y. Zou, W. Huang,
    X. Zhang, A note on confidence interval estimation for a linear function of binomial proportions, Computational
    Statistics and Data Analysis 53, 2009). Where only one direction is defined, it stands alone.
    """
    a, b = pairs.T
    rates = np.stack([directional[a, b], directional[b, a]])
    sizes = np.stack([inputs[a, b], inputs[b, a]])
    known = np.isfinite(rates)
    shares = np.where(known, rates, 0.0)
    low, high = wilson(shares, np.where(known, sizes, 1.0))
    below, above = (np.where(known, gap, 0.0) for gap in (shares - low, high - shares))
    parts = known.sum(0)
    with np.errstate(invalid="ignore"):
        rate = np.where(parts > 0, shares.sum(0) / parts, np.nan)
        down, up = (np.sqrt((gap**2).sum(0)) / parts for gap in (below, above))
    counted = np.where(known, sizes, 0.0)
    return Verdicts(
        confused=(shares * counted).sum(0).round().astype(np.int64),
        inputs=counted.sum(0).round().astype(np.int64),
        rate=rate,
        low=rate - down,
        high=rate + up,
        cutoff=cutoff,
    )


def wilson(share: NDArray[np.floating], trials: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's 95 % interval of shares observed in so many trials each."""
    squared = _NORMAL**2
    middle = (share + squared / (2 * trials)) / (1 + squared / trials)
    half = _NORMAL * np.sqrt(share * (1 - share) / trials + squared / (4 * trials**2)) / (1 + squared / trials)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def judge_disparity(
    directional: NDArray[np.floating], inputs: NDArray[np.floating], pair: tuple[int, int], seed: int = 0
) -> DisparityVerdict:
    """Return how many inputs are behind the disparity of a pair of classes, and how far it may differ.

    The margin is 1.96 standard deviations over test sets of the same sizes, drawn anew: each direction's confused
    inputs from a binomial distribution. Arguments as `judge`.
    """
    ends = list(pair)
    others = np.setdiff1d(np.arange(len(directional)), ends)
    # Confusion of the two classes with third ones, from them and to them: (directions, 2, third classes).
    rates = np.stack([directional[ends][:, others], directional[:, ends].T[:, others]])
    sizes = np.stack([inputs[ends][:, others], inputs[:, ends].T[:, others]])
    known = np.isfinite(rates)
    shares, trials = np.where(known, rates, 0.0), np.where(known, sizes, 1.0).astype(np.int64)
    parts = known.sum(0)
    defined = (parts > 0).all(0)
    margin = float("nan")
    if defined.any():
        drawn = np.random.default_rng(seed).binomial(trials, shares, (_DRAWS, *rates.shape)) / trials
        confusion = np.where(known, drawn, 0.0).sum(1) / np.maximum(parts, 1)
        margin = float(_NORMAL * np.abs(confusion[:, 0] - confusion[:, 1])[:, defined].mean(1).std())
    return DisparityVerdict(int((shares * trials).sum().round()), margin)
