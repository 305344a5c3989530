"""Figures measured here beside published ones, with their intervals over repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idc_core.base.scipy_parts import special
from idc_core.base.statistics import wilson

_TAIL = 0.975


@dataclass(frozen=True)
class Beside:
    """One figure of a published table, and the same measured here.

    Attributes
    ----------
    table : str
        The published table or figure, such as "Table 5".
    case : str
        The row: a network, a setting.
    measure, unit : str
    paper : float or None
        The published figure; None where there is none for this row.
    here : float or None
        The one measured here, None where there was nothing to measure.
    low, high : float or None
        Ends of its 95 % interval; None of a single measurement.
    of : int
        Repetitions, or cases, that it is of.
    """

    table: str
    case: str
    measure: str
    unit: str
    paper: float | None
    here: float | None
    low: float | None = None
    high: float | None = None
    of: int = 1


def repeated(
    table: str, case: str, measure: str, unit: str, values: Sequence[float], paper: float | None = None
) -> Beside:
    """Return the mean of repetitions with Student's interval; what is no number is left out."""
    known = np.array([value for value in values if np.isfinite(value)], np.float64)
    if len(known) < 2:
        return Beside(table, case, measure, unit, paper, float(known[0]) if len(known) else None, of=len(known))
    mean = float(known.mean())
    half = float(special.stdtrit(len(known) - 1, _TAIL) * known.std(ddof=1) / np.sqrt(len(known)))
    return Beside(table, case, measure, unit, paper, mean, mean - half, mean + half, len(known))


def counted(table: str, case: str, measure: str, number: int, of: int, paper: float | None = None) -> Beside:
    """Return a share of cases in percent with Wilson's interval."""
    low, high = (100 * float(end[0]) for end in wilson(np.array([number / of]), np.array([of])))
    return Beside(table, case, measure, "%", paper, 100 * number / of, low, high, of)
