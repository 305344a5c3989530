"""What labels say of pairs of classes, and how surely: counts, intervals, and the cut-off of a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.statistics import wilson
from idc_core.confusion.ground_truth import Floats, Ints


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
