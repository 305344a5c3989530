"""Yardsticks: what each test of a pool finds, by which subsets of it, and the criteria that chose them, are judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Ints
from idc_core.errors import SettingError


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What the tests of a pool find in one network.

    Attributes
    ----------
    name : str
        What the targets are, for people: "mutants after training", "distinct faults".
    found : bool (n, targets)
        Whether test i finds target j: kills the mutant, or belongs to the fault. Every target is found by some test.
    """

    name: str
    found: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Refuse what is no table of booleans, and targets that no test of the pool can find."""
        if self.found.ndim != 2 or self.found.dtype != np.bool_:
            raise SettingError(
                f"A yardstick is a table of booleans (tests, targets), got {self.found.dtype} {self.found.shape}."
            )
        lost = int((~self.found.any(0)).sum())
        if lost:
            raise SettingError(f"Every target of a yardstick is found by some test; {lost} of {self.name!r} by none.")

    @property
    def targets(self) -> int:
        """Number of targets."""
        return int(self.found.shape[1])

    def share(self, tests: Ints) -> float:
        """Return the share of the targets, 0..1, that the tests at these places, int64 (k,), find together.

        Raises
        ------
        SettingError
            If there are no targets: a share of none is no number.
        """
        if not self.targets:
            raise SettingError(f"There are no {self.name} to be found: no share can be said.")
        return float(self.found[tests].any(0).mean())
