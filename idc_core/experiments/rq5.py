"""RQ5: how Importance-Driven Coverage depends on the layer."""

from __future__ import annotations

from collections.abc import Sequence

from idc_core.cache import Record
from idc_core.experiments.criterion_scores import Ask, Readings
from idc_core.experiments.random_neurons import check_seeds
from idc_core.experiments.rq2 import cells_row, grouped, noisy
from idc_core.experiments.rq3 import FAST, attacked


def rq5(readings: Readings, seeds: int = 5, ms: Sequence[int] = (4, 6), share: float = 0.02) -> list[Record]:
    """Measure IDC of every layer, for the original tests and with noise and attacks added.

    Parameters
    ----------
    readings, seeds, ms, share
        As in `rq2`.

    Returns
    -------
    list of dict
        A row a suite, layer (in forward order) and m, as `rq2` has them.

    References
    ----------
    .. [1] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
       ICSE 2020, Table 5.
    """
    listed, tests = check_seeds(seeds), len(readings.test)
    asks = [Ask("U_O", "original", tests), *noisy(tests, listed, share)]
    asks += attacked(FAST, tests) if readings.test.task == "classification" else []
    return [
        {"suite": name, "layer": layer, "m": m, "used": used} | row
        for name, found in grouped(readings, asks).items()
        for layer in readings.layers
        for m in ms
        for used, row in [cells_row(found, layer, m)]
    ]
