"""RQ4: whether Importance-Driven Coverage ranks test sets as other criteria do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from idc_core.cache import Record
from idc_core.coverage.agreement import Method, correlations, subset_correlations
from idc_core.experiments.criterion_scores import Ask, Readings, other_criteria
from idc_core.experiments.rq2 import noisy
from idc_core.experiments.rq3 import EVERYWHERE, FAST, attacked
from idc_core.perturbation import TRANSFORMS

ORDERS = 20
"""Random orders of the tests whose growing beginnings are the random subsets."""


def suites(tests: int, share: float = 0.02) -> list[Ask]:
    """Return different suites of one size: original, noise three times, every transform, and the fast attacks."""
    return [
        Ask("U_O", "original", tests),
        *noisy(tests, (0,), share),
        Ask("U_O+noise", "noise", tests, 0, 1, EVERYWHERE),
        *(Ask(f"U_O+{name}", name, tests) for name in TRANSFORMS),
        *attacked(FAST, tests),
    ]


def rq4(readings: Readings, ms: Sequence[int] = (6, 12), share: float = 0.02) -> list[Record]:
    """Correlate the scores of IDC with those of other criteria.

    Parameters
    ----------
    readings : Readings
    ms : sequence of int
        IDC is told for these numbers of important neurons.
    share : float
        As in `rq2`.

    Returns
    -------
    list of dict
        A row a set of points, criterion and m: rank correlations (Spearman, Kendall's tau-b), None where one of the
        two gives the same score throughout. The points are suites alone, all of one size; growing random subsets of
        the original tests, of all sizes; and the same compared within one size, averaged over the sizes.

    References
    ----------
    .. [1] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
       ICSE 2020, RQ4.
    """
    classifier = readings.test.task == "classification"
    asks = [ask for ask in suites(len(readings.test), share) if classifier or not ask.attacked]
    found = [readings.read(ask) for ask in asks]
    names = [f"idc{m}" for m in ms] + [name for name in other_criteria() if name in found[0]["scores"]]
    values = np.array([[_score(one, readings.layer, name) for one in found] for name in names])
    grown = readings.growth(ms, ORDERS)
    growth = np.array([grown["scores"][name] for name in names])
    points = {
        f"{len(found)} suites": [correlations(values, method) for method in get_args(Method)],
        "random subsets": [subset_correlations(growth, method) for method in get_args(Method)],
        "random subsets of one size": [
            subset_correlations(growth, method, same_size=True) for method in get_args(Method)
        ],
    }
    return [
        {
            "points": point,
            "m": m,
            "criterion": name,
            "spearman": _plain(spearman, place, names.index(name)),
            "kendall": _plain(kendall, place, names.index(name)),
        }
        for point, (spearman, kendall) in points.items()
        for place, m in enumerate(ms)
        for name in names
        if name != f"idc{m}"
    ]


def _score(found: Record, layer: str, name: str) -> float:
    if not name.startswith("idc"):
        return float(found["scores"][name][0])
    rows = found["cells"][layer]
    _, total, alone, *_ = rows[min(int(name[3:]), len(rows)) - 1]
    return float(alone / total)


def _plain(values: NDArray[np.float64], row: int, column: int) -> float | None:
    value = float(values[row, column])
    return value if np.isfinite(value) else None
