"""Whether made inputs are valid: conformal p-values of a detector, and what share of known-bad inputs it accepts.

A detector that lets 95 % of natural inputs pass says nothing by that alone: one that also lets noise pass validates
nothing. So what it accepts of known-bad inputs belongs to every statement of validity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.base.statistics import wilson
from idc_core.errors import SettingError
from idc_core.evidence.finding import Control, Finding

REJECTED = 0.05
"""The p-value up to which an input counts as invalid: the share of natural inputs that is refused."""


def conformal_p(calibration: NDArray[np.floating], strangeness: NDArray[np.floating]) -> Floats:
    """Return the p-value of each input's strangeness (n,) among that of held-out natural inputs (c,), float64 (n,).

    ``(1 + natural inputs at least as strange) / (c + 1)``: of further natural inputs at most a share p has a value of
    at most p, whatever the detector measures, since they and the calibration are exchangeable.

    Raises
    ------
    SettingError
        If there are fewer natural inputs than a p-value of 0.05 takes.

    Notes
    -----
    V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", 2005 (split conformal).
    """
    count = len(calibration)
    if (count + 1) * REJECTED < 1:
        raise SettingError(f"A detector is calibrated on at least 19 natural inputs, got {count}.")
    below = np.searchsorted(np.sort(calibration), strangeness, "left")
    return np.asarray((1 + count - below) / (count + 1), np.float64)


@dataclass(frozen=True)
class Accepted:
    """How many inputs of one kind a detector accepts."""

    what: str  # "noise", "shuffled pixels"
    accepted: int
    of: int

    @property
    def share(self) -> float:
        """Accepted share, 0..1; 0 of none."""
        return self.accepted / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share."""
        if not self.of:
            return 0.0, 1.0
        low, high = wilson(np.array([self.share]), np.array([self.of]))
        return float(low[0]), float(high[0])


@dataclass(frozen=True)
class Validity:
    """What is known of a detector.

    Attributes
    ----------
    detector : str
        Its name for people.
    natural : Accepted
        Natural inputs that it was neither fitted to nor calibrated on.
    known_bad : tuple of Accepted
        By kind, inputs that are certainly not valid.
    """

    detector: str
    natural: Accepted
    known_bad: tuple[Accepted, ...]

    def __post_init__(self) -> None:
        """Refuse a detector that was tried on nothing that is bad."""
        if not sum(kind.of for kind in self.known_bad):
            raise SettingError("A detector says nothing until it was tried on known-bad inputs.")

    @property
    def bad(self) -> Accepted:
        """All known-bad inputs together."""
        accepted, count = (sum(getattr(kind, name) for kind in self.known_bad) for name in ("accepted", "of"))
        return Accepted("known-bad inputs", accepted, count)

    def finding(self, valid: int, of: int) -> Finding:
        """Return the share of made inputs that it accepts beside that of known-bad ones.

        The interval of the difference is Newcombe's, p that of Fisher's exact test.
        """
        from idc_core.base.scipy_parts import stats

        made, bad = Accepted("made inputs", valid, of), self.bad
        (low, high), (least, most) = made.interval, bad.interval
        down = np.hypot(made.share - low, most - bad.share)
        up = np.hypot(high - made.share, bad.share - least)

        def fisher(first: int, second: int) -> float:
            return float(stats.fisher_exact([[first, of - first], [second, bad.of - second]])[1])

        return Finding(
            subject="validity",
            claim="Generated inputs accepted as valid",
            number=made.share,
            control=Control("of known-bad inputs", bad.share, least, most),
            low=float(made.share - bad.share - down),
            high=float(made.share - bad.share + up),
            p=min(1.0, fisher(valid, bad.accepted)),
            least_p=min(1.0, fisher(of, 0)),
            unit="%",
        )
