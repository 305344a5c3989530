"""What rankings are worth over several networks, of which each counts once: differences, intervals, tests, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from idc_core.base.arrays import Floats
from idc_core.base.statistics import holm, mean_ranks
from idc_core.errors import DataError
from idc_core.store.cache import Record
from idc_core.worth.study import DESIGNS, SIZE

ENOUGH = 10
"""Networks from which on a result is a headline."""

RETRAINED = "retrained mutants"
"""The yardstick that takes hours, made only where it is asked for."""

TELLING = (RETRAINED, "mutants after training", "distinct faults", "kinds of mistakes")
"""Yardsticks, from the one that is closest to real faults on; any others follow."""

_RESAMPLES = 10_000
"""Bootstrap samples of the networks, for an interval."""


@dataclass(frozen=True)
class Mean:
    """A mean over networks.

    Attributes
    ----------
    networks : int
        How many there are.
    value : float
    low, high : float
        Its 95 % interval (bootstrap over the networks, percentiles).
    p : float
        Probability of a median as far from 0 by chance (Wilcoxon's signed-rank test, exact where no two are equal).
    corrected_p : float
        The same among all rankings of the table, by Holm's correction.
    """

    networks: int
    value: float
    low: float
    high: float
    p: float
    corrected_p: float

    @property
    def is_certain(self) -> bool:
        """Whether it stands out among all rankings of the table."""
        return self.corrected_p <= 0.05


@dataclass(frozen=True)
class SelectedRow:
    """What the tests find that a ranking selects at one budget, over networks.

    Attributes
    ----------
    ranking : str
    found : float
        Mean share of the targets found.
    random : float
        Mean share found by as many random tests.
    more : Mean
        Difference of the two, network by network.
    above : float
        A12, by A. Vargha and H. D. Delaney (2000): probability that the selection finds more than a random one, half of
        that of finding as much; the mean over the networks. 0.5 says that there is no difference.
    """

    ranking: str
    found: float
    random: float
    more: Mean
    above: float


@dataclass(frozen=True)
class AddedRow:
    """What corrupted tests cover beyond others by one criterion, over networks.

    Attributes
    ----------
    criterion : str
    times : dict of str to Mean
        By severity ("1" to "5") the natural logarithm of how many times as many targets they cover as the same tests
        cover as they are; half a target is added to both, so that none is a number too.
    invalid : dict of str to float
        By severity, "0" for the tests as they are, the share of those targets, 0..1, that only inputs reach which a
        detector refuses: mean over the networks where there are any; NaN where there are in none.
    """

    criterion: str
    times: dict[str, Mean]
    invalid: dict[str, float]


def added(records: Mapping[str, Record]) -> list[AddedRow]:
    """Return what corrupted tests cover by each criterion, the one that they raise most (severity 5) first.

    `records` are what `study_network` gives; those without corruptions are left out. Probabilities are corrected for
    the number of criteria at each severity.
    """
    held = [record["corruptions"]["gains"] for record in records.values() if "corruptions" in record]
    names = list(dict.fromkeys(name for gains in held for name in gains))
    levels = [level for level in (held[0][names[0]] if held else ()) if level.isdigit()]
    of = {name: [gains[name] for gains in held if name in gains] for name in names}
    times = {
        level: _means({name: np.array([_log_ratio(one[level][0], one["0"][0]) for one in of[name]]) for name in names})
        for level in levels
        if level != "0"
    }
    rows = [
        AddedRow(
            name,
            {level: means[name] for level, means in times.items()},
            {level: _share([one[level] for one in of[name]]) for level in levels},
        )
        for name in names
    ]
    return sorted(rows, key=lambda row: -row.times[max(row.times)].value)


def _log_ratio(number: float, other: float) -> float:
    return float(np.log((number + 0.5) / (other + 0.5)))


def _share(parts: list[list[float]]) -> float:
    """Return the mean share that the second number is of the first, where that is above 0."""
    shares = [invalid / gained for gained, invalid in parts if gained]
    return float(np.mean(shares)) if shares else float("nan")


def yardsticks_of(records: Mapping[str, Record]) -> list[str]:
    """Return the names of all yardsticks of some networks' records, the most telling one first."""
    names = sorted({name for record in records.values() for name in record["yardsticks"]})
    return sorted(names, key=lambda name: TELLING.index(name) if name in TELLING else len(TELLING))


def selected(records: Mapping[str, Record], yardstick: str, budget: int) -> list[SelectedRow]:
    """Return what each ranking's selection finds over networks, the largest difference to random first.

    `records` are what `study` gives by network; those without the yardstick are left out. `budget` is its place among
    the budgets.
    """
    held = _held(records, yardstick)
    values: dict[str, list[tuple[float, float, float]]] = {}
    for record in held:
        random = record["random"][budget][0]
        for name, row in record["rankings"].items():
            if row["found"] is not None:
                values.setdefault(name, []).append((row["found"][budget], random, row["above"][budget]))
    means = _means({name: np.array([found - random for found, random, _ in rows]) for name, rows in values.items()})
    made = []
    for name, rows in values.items():
        found, random, above = np.mean(rows, axis=0).tolist()
        made.append(SelectedRow(name, found, random, means[name], above))
    return sorted(made, key=lambda row: -row.more.value)


def correlated(records: Mapping[str, Record], yardstick: str) -> dict[str, dict[str, Mean]]:
    """Return the mean correlation of each ranking's score with the share found, by design and ranking.

    A network in which a score does not vary is left out of that mean.
    """
    held = _held(records, yardstick)
    found = {}
    for design in DESIGNS:
        values: dict[str, list[float]] = {}
        for record in held:
            for name, row in record["rankings"].items():
                if row[design] is not None:
                    values.setdefault(name, []).append(row[design])
        found[design] = _means({name: np.array(rows) for name, rows in values.items()})
    return found


def _held(records: Mapping[str, Record], yardstick: str) -> list[Record]:
    held = [record["yardsticks"][yardstick] for record in records.values() if yardstick in record["yardsticks"]]
    if not held:
        raise DataError(
            f"No network was held to {yardstick!r}; the yardsticks are {', '.join(yardsticks_of(records))}."
        )
    return held


def _means(values: Mapping[str, Floats]) -> dict[str, Mean]:
    """Return the mean of each ranking's values (networks,), corrected for how many rankings there are."""
    tested = [name for name in values if name != SIZE]
    p = {name: signed_rank(values[name]) for name in values}
    corrected = dict(zip(tested, holm(np.array([p[name] for name in tested])).tolist(), strict=True))
    return {
        name: Mean(len(rows), float(rows.mean()), *interval(rows), p[name], corrected.get(name, p[name]))
        for name, rows in values.items()
    }


def interval(values: Floats, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values (networks,), by bootstrap over the networks."""
    drawn = np.random.default_rng(seed).integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(1), [0.025, 0.975])
    return float(low), float(high)


def signed_rank(values: Floats) -> float:
    """Return the probability of values as far on one side of 0 by chance (F. Wilcoxon, 1945); 1 where all are 0.

    Exact for up to 20 networks, ties included: over all signs that the values could have had.
    """
    varied = values[np.abs(values) > 1e-12]
    if not len(varied):
        return 1.0
    if len(varied) > 20:
        from idc_core.base.scipy_parts import stats

        return float(stats.wilcoxon(varied).pvalue)
    ranks = mean_ranks(np.abs(varied).round(12))
    # Sums of every second of twice the ranks are whole numbers, whose chances are counted one rank after the other.
    doubled = (2 * ranks).round().astype(np.int64)
    chances = np.zeros(doubled.sum() + 1)
    chances[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[:-rank]
        chances = 0.5 * (chances + moved)
    seen = int(doubled[varied > 0].sum())
    tail = min(chances[: seen + 1].sum(), chances[seen:].sum())
    return float(min(1.0, 2 * tail))
