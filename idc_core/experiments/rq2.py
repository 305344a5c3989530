"""RQ2: whether Importance-Driven Coverage tells noise on the pixels that decide from the same noise on random ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from idc_core.cache import Record
from idc_core.experiments.criterion_scores import Ask, Readings
from idc_core.experiments.random_neurons import check_seeds

DEVIATION = 0.75
"""Standard deviation of the noise in parts of a pixel's range, as in the program published with the paper."""

NOISES = (("S", "noise"), ("DI", "guided"))
"""What the paper's tables call the two suites, and their kinds."""


def noisy(tests: int, seeds: Sequence[int], share: float = 0.02) -> list[Ask]:
    """Return the suites U_O+S and U_O+DI, one a seed."""
    settings = {"share": share, "deviation": DEVIATION}
    return [Ask(f"U_O+{name}", kind, tests, seed, 1, settings) for name, kind in NOISES for seed in seeds]


def natural(readings: Readings, tests: int) -> list[Ask]:
    """Return the suite that adds as many training inputs; none where there are too few of them."""
    return [Ask("U_O+train", "train", tests)] if len(readings.train) >= tests else []


def rq2(readings: Readings, seeds: int = 5, ms: Sequence[int] = (6, 8, 10, 12), share: float = 0.02) -> list[Record]:
    """Measure IDC of the original tests, and of these with noise added.

    Parameters
    ----------
    readings : Readings
    seeds : int
        Draws of the noise, from seed 0.
    ms : sequence of int
        Numbers of important neurons; a layer with fewer takes all.
    share : float
        Share of the pixels that get noise.

    Returns
    -------
    list of dict
        A row a suite and m: means over the seeds, and their standard deviation (None for one seed). "idc" is of the
        suite with the original tests, "alone" without them, "added" the cells that the original tests do not reach.
        "seeds_won" of U_O+DI counts the seeds with which it covers more than U_O+S.
        "U_O+train" adds as many training inputs, where there are enough: what natural inputs would add. The last
        suites, as "U_O+5S", hold the copies of all seeds at once.

    References
    ----------
    .. [1] S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, "Importance-Driven Deep Learning System Testing",
       ICSE 2020, RQ2, Table 3.
    """
    listed, tests = check_seeds(seeds), len(readings.test)
    asks = [Ask("U_O", "original", tests), *noisy(tests, listed, share), *natural(readings, tests)]
    if len(listed) > 1:
        settings = {"share": share, "deviation": DEVIATION}
        asks += [Ask(f"U_O+{seeds}{name}", kind, tests, 0, seeds, settings) for name, kind in NOISES]
    read = grouped(readings, asks)
    rows: list[Record] = []
    for name, found in read.items():
        for m in ms:
            used, row = cells_row(found, readings.layer, m)
            won = _won(read["U_O+S"], found, readings.layer, used) if name == "U_O+DI" else None
            rows.append({"suite": name, "m": m, "used": used} | row | {"seeds_won": won})
    return rows


def _won(random: Sequence[Record], guided: Sequence[Record], layer: str, used: int) -> int:
    pairs = zip(random, guided, strict=True)
    return sum(two["cells"][layer][used - 1][3] > one["cells"][layer][used - 1][3] for one, two in pairs)


def grouped(readings: Readings, asks: Sequence[Ask]) -> dict[str, list[Record]]:
    """Read suites, and put those that differ by the seed alone together, by name."""
    found: dict[str, list[Record]] = {}
    for ask in asks:
        found.setdefault(ask.name, []).append(readings.read(ask))
    return found


def cells_row(found: Sequence[Record], layer: str, m: int) -> tuple[int, Record]:
    """Return how many neurons are used, and the IDC of a layer over several readings of one suite."""
    cells = np.array([one["cells"][layer][min(m, len(one["cells"][layer])) - 1] for one in found], dtype=object)
    used, total, original = int(cells[0, 0]), int(cells[0, 1]), int(cells[0, 4])
    alone, together = cells[:, 2].astype(np.float64), cells[:, 3].astype(np.float64)
    accuracies = [one["accuracy"] if one["rmse"] is None else one["rmse"] for one in found]
    return used, {
        "inputs": int(found[0]["inputs"]),
        "seeds": len(found),
        "total": total,
        "covered": mean(together),
        "added": mean(together - original),
        "idc": mean(together / total),
        "idc_deviation": deviation(together / total),
        "alone": mean(alone / total),
        "alone_deviation": deviation(alone / total),
        "unit": "accuracy" if found[0]["rmse"] is None else "RMSE",
        "achieved": mean(accuracies),
    }


def mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean as a plain number."""
    return float(np.mean(values))


def deviation(values: Sequence[float] | np.ndarray) -> float | None:
    """Return the standard deviation of a sample; None where there is only one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
