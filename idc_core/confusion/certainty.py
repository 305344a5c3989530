"""Which pairs of classes are confused more than the others for certain, whatever the tests happen to be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.ground_truth import Floats, Ints
from idc_core.evidence.finding import LEVEL


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How many inputs of each direction are confused, and among how many; int64 (classes, classes), 0 where undefined.

    [a, b] counts inputs of class a that are predicted as b.
    """

    confused: Ints
    inputs: Ints

    @classmethod
    def of(cls, directional: NDArray[np.floating], inputs: NDArray[np.floating]) -> PairCounts:
        """Return the counts behind a confusion by direction, as `type1_confusion` and `inputs_behind` give them."""
        behind = np.where(np.isfinite(directional), inputs, 0.0)
        confused = np.nan_to_num(directional) * behind
        return cls(confused.round().astype(np.int64), behind.round().astype(np.int64))

    @cached_property
    def total(self) -> tuple[int, int]:
        """Confused inputs of all pairs, and inputs."""
        return int(self.confused.sum()), int(self.inputs.sum())

    @cached_property
    def looks(self) -> int:
        """How many pairs there are to choose from."""
        behind = self.inputs > 0
        return int(np.triu(behind | behind.T, 1).sum())

    @cached_property
    def known(self) -> Ints:
        """The pairs that have a confused input, int64 (k, 2), smaller class first."""
        wrong = self.confused > 0
        return np.argwhere(np.triu(wrong | wrong.T, 1)).astype(np.int64)

    def of_pairs(self, pairs: Ints) -> tuple[Ints, Ints]:
        """Return the confused inputs of pairs (k, 2), both directions together, and the inputs, int64 (k,) each."""
        a, b = pairs.T
        return self.confused[a, b] + self.confused[b, a], self.inputs[a, b] + self.inputs[b, a]

    def chances(self, pairs: Ints) -> tuple[Floats, Floats]:
        """Return the probability of as many confused inputs of each pair by chance, and the least that there can be.

        Float64 (k,) each, for one look; 1 where there is no other pair to compare with.

        Notes
        -----
        Fisher's exact test, one-sided: given how many inputs of all pairs are confused, those of one pair are drawn
        from all without replacement, where its rate is that of the others. No pair of two classes has others.
        """
        from idc_core.base.scipy_parts import stats

        confused, inputs = self.of_pairs(pairs)
        wrong, total = self.total
        p, least = np.ones(len(pairs)), np.ones(len(pairs))
        if wrong:
            others = inputs < total
            # Most pairs have no confused input, and many the same numbers of inputs.
            some = others & (confused > 0)
            p[some] = stats.hypergeom.sf(confused[some] - 1, total, wrong, inputs[some])
            sizes, place = np.unique(inputs, return_inverse=True)
            most = np.minimum(sizes, wrong)
            least = np.where(others, stats.hypergeom.sf(most - 1, total, wrong, sizes)[place], 1.0)
        return p.clip(0.0, 1.0), least.clip(0.0, 1.0)

    def certain(self, pairs: Ints) -> NDArray[np.bool_]:
        """Return whether pairs (k, 2) are confused more than the others for certain, bool (k,).

        At most in one of twenty networks whose pairs are all confused alike any pair is (Bonferroni over all pairs).
        """
        return np.asarray(self.chances(pairs)[0] * self.looks <= LEVEL)

    def needed(self, pair: tuple[int, int]) -> int | None:
        """Return how many of all confused inputs a pair must have to be certain; None where none would be enough."""
        from idc_core.base.scipy_parts import stats

        _, inputs = self.of_pairs(np.array([pair]))
        wrong, total = self.total
        most = min(wrong, int(inputs[0]))
        if inputs[0] == total or not most:
            return None
        enough = stats.hypergeom.sf(np.arange(most), total, wrong, inputs[0]) * self.looks <= LEVEL
        return int(np.argmax(enough)) + 1 if enough.any() else None
