"""A number of chosen items beside the same number of random ones: its rank among the draws."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.evidence.finding import Control, Finding

Ends = Literal["both", "low", "high"]
"""At which ends of the draws a number is looked for."""


def against_draws(
    subject: str,
    claim: str,
    number: float,
    draws: NDArray[np.floating],
    what: str,
    unit: str = "",
    *,
    ends: Ends = "both",
    looks: int = 1,
) -> Finding:
    """Compare a number with that of random draws (d,), each different from the others.

    Where the items are like random ones, the number has any place among the draws with the same probability. One draw
    tells nothing, and 39 are needed for the most extreme place to stand out; at one end 19.

    Parameters
    ----------
    subject, claim, unit, looks
        As in `Finding`.
    number : float
    draws : ndarray, float (d,)
        One or more.
    what : str
        What was drawn, as a phrase that follows a number: "of as many random ones".
    ends : {"both", "low", "high"}
        Where a number stands out: at both ends, or where only one says what is asked, there.
    """
    values = np.asarray(draws, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise SettingError(f"Expected a finite number for every draw, one or more; got {values!r:.200}.")
    low, high = (float(end) for end in np.quantile(values, [0.025, 0.975]))
    least = (2 if ends == "both" else 1) / (len(values) + 1)
    beyond = {"low": int((values <= number).sum()), "high": int((values >= number).sum())}
    p = min(1.0, ((min(beyond.values()) if ends == "both" else beyond[ends]) + 1) * least)
    control = Control(what, float(values.mean()), low, high)
    return Finding(subject, claim, number, control, number - high, number - low, p, min(1.0, least), looks, unit)
