"""Which of many associations are there: false-discovery control."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.inspection.result import Inspection


def passing(p_values: NDArray[np.float64], rate: float = 0.05, *, dependent: bool = True) -> NDArray[np.bool_]:
    """Return which tests pass when at most a share `rate` of those that pass may be false, on average.

    Parameters
    ----------
    p_values : ndarray, float64 (n,)
        NaN for what was not tested: it does not pass, and does not count.
    rate : float
        The false-discovery rate.
    dependent : bool
        Whether tests may depend on one another in any way, as units of one layer do.

    Returns
    -------
    ndarray, bool (n,)

    Raises
    ------
    SettingError
        If the rate is not between 0 and 1.

    Notes
    -----
    Y. Benjamini, D. Yekutieli, The control of the false discovery rate in multiple testing under dependency, Annals of
    Statistics 29(4), 2001, theorem 1.3; without dependence Benjamini and Hochberg's procedure of 1995.
    """
    if not 0 < rate < 1:
        raise SettingError(f"The false-discovery rate must be between 0 and 1, not {rate!r}.")
    found = np.zeros(len(p_values), bool)
    tested = np.flatnonzero(~np.isnan(p_values))
    if not len(tested):
        return found
    count = len(tested)
    factor = float((1 / np.arange(1, count + 1)).sum()) if dependent else 1.0
    order = tested[np.argsort(p_values[tested], kind="stable")]
    limits = rate * np.arange(1, count + 1) / (count * factor)
    below = np.flatnonzero(p_values[order] <= limits)
    if len(below):
        found[order[: below[-1] + 1]] = True
    return found


def discoveries(inspection: Inspection, rate: float = 0.05, *, dependent: bool = True) -> NDArray[np.bool_]:
    """Return which lines of an inspection are associations at a false-discovery rate, measure by measure.

    Parameters
    ----------
    inspection : Inspection
    rate, dependent
        As in `passing`; all scores of one measure are one family of tests.

    Returns
    -------
    ndarray, bool (lines,)
    """
    found = np.zeros(len(inspection), bool)
    measures = inspection.table["measure"]
    for measure in dict.fromkeys(measures.tolist()):
        lines = np.flatnonzero(measures == measure)
        found[lines] = passing(inspection.table["p_value"][lines], rate, dependent=dependent)
    return found
