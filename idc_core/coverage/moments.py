"""Mean and covariance of a stream: added batch by batch, merged part by part, without cancellation."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats


@dataclass
class Moments:
    """Number of rows, their mean (d,), and their sums of products about the mean (`scatter`, float64 (d, d)).

    T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
    1979: equal to one pass over all rows but for rounding, however these are cut.
    """

    count: int = 0
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    scatter: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, rows: NDArray[np.floating]) -> Self:
        """Take in rows (n, d)."""
        if not len(rows):
            return self
        mean = rows.mean(0, dtype=np.float64)
        deviations = rows - mean
        return self.merge(Moments(len(rows), mean, deviations.T @ deviations))

    def merge(self, other: "Moments") -> Self:
        """Take in the rows of another."""
        if not other.count:
            return self
        if not self.count:
            self.count, self.mean, self.scatter = other.count, other.mean, other.scatter
            return self
        total = self.count + other.count
        step = other.mean - self.mean
        self.scatter = self.scatter + other.scatter
        self.scatter += np.outer(step, step * (self.count * other.count / total))
        self.mean = self.mean + step * (other.count / total)
        self.count = total
        return self

    def covariance(self, missing: int = 0) -> Floats:
        """Return the covariance, float64 (d, d), dividing by count - missing; 0 where that leaves nothing."""
        return self.scatter / max(self.count - missing, 1)
