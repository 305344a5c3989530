"""What retraining came to: units, and means, deviations and paired differences over them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Task
from idc_core.errors import SettingError

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""Probability with which an interval holds the mean over all seeds, if their differences are normally distributed."""

_WEIGHT = "weight:"


@dataclass(frozen=True, eq=False)
class Unit:
    """One network, retrained with one addition and one seed.

    Attributes
    ----------
    values : ndarray, float64 (epochs + 1, tests)
        Accuracy, 0..1, or root mean squared error; first before training, then after every epoch.
    added : int
        How many inputs were added to the training data.
    shown, shown_targets : ndarray (k, ...), (k,)
        Some of them, to be looked at.
    weights : dict of str to ndarray
        The network's state after the last epoch.
    """

    values: Floats
    added: int
    shown: NDArray[Any]
    shown_targets: NDArray[Any]
    weights: dict[str, NDArray[Any]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays by name."""
        named = {_WEIGHT + name: value for name, value in self.weights.items()}
        own = {"values": self.values, "added": np.array(self.added)}
        return {**own, "shown": self.shown, "shown_targets": self.shown_targets, **named}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the unit that `arrays` came from."""
        weights = {name.removeprefix(_WEIGHT): arrays[name] for name in arrays if name.startswith(_WEIGHT)}
        return cls(arrays["values"], int(arrays["added"]), arrays["shown"], arrays["shown_targets"], weights)


@dataclass(frozen=True, eq=False)
class Difference:
    """How two additions differ at the end, seed by seed.

    Attributes
    ----------
    addition, against : str
    values : ndarray, float64 (s, tests)
        Of every seed that both are finished for: the first one's accuracy (or error) minus the other's.
    mean, low, high : ndarray, float64 (tests,)
        Mean over the seeds, and the ends of its confidence interval (Student's t, paired, `CONFIDENCE`); NaN with
        fewer than two seeds.
    """

    addition: str
    against: str
    values: Floats
    mean: Floats
    low: Floats
    high: Floats

    @property
    def exceeds(self) -> NDArray[np.bool_]:
        """For every test, whether the difference exceeds the seeds' spread: its interval leaves out 0."""
        found: NDArray[np.bool_] = (self.low > 0) | (self.high < 0)
        return found


@dataclass(frozen=True, eq=False)
class Retraining:
    """Networks retrained with several additions and seeds.

    Attributes
    ----------
    additions : tuple of str
    seeds : tuple of int
    tests : tuple of str
    task : {"classification", "regression"}
    epochs, steps : int
        Epochs, and steps of each.
    trained_on : int
        Training inputs without additions.
    start : {"trained", "scratch"}
    units : dict of (str, int) to Unit
        The finished ones, by addition and seed.
    """

    additions: tuple[str, ...]
    seeds: tuple[int, ...]
    tests: tuple[str, ...]
    task: Task
    epochs: int
    steps: int
    trained_on: int
    start: str
    units: dict[tuple[str, int], Unit] = field(repr=False)

    @property
    def complete(self) -> bool:
        """Whether every addition is finished with every seed."""
        return len(self.units) == len(self.additions) * len(self.seeds)

    @property
    def values(self) -> Floats:
        """Accuracy or error, float64 (additions, seeds, epochs + 1, tests); NaN where a unit is not finished."""
        empty = np.full((self.epochs + 1, len(self.tests)), np.nan)
        rows = [
            [self.units[name, seed].values if (name, seed) in self.units else empty for seed in self.seeds]
            for name in self.additions
        ]
        return np.array(rows, np.float64)

    @property
    def unit(self) -> str:
        """What the numbers are: "accuracy" or "RMSE"."""
        return "accuracy" if self.task == "classification" else "RMSE"

    def mean(self) -> Floats:
        """Return the mean over the finished seeds, float64 (additions, epochs + 1, tests); NaN where there is none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanmean(self.values, axis=1))

    def deviation(self) -> Floats:
        """Return the standard deviation over the finished seeds (n - 1), of the same shape; NaN below two seeds."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanstd(self.values, axis=1, ddof=1))

    def finished(self, *additions: str) -> list[int]:
        """Return the seeds that all these additions are finished with."""
        return [seed for seed in self.seeds if all((name, seed) in self.units for name in additions)]

    def added(self, addition: str) -> list[int]:
        """Return how many inputs were added, for every finished seed."""
        return [self.units[addition, seed].added for seed in self.finished(addition)]

    def difference(self, addition: str, against: str) -> Difference:
        """Compare two additions after the last epoch, seed by seed.

        Raises
        ------
        SettingError
            If one of them is not there.
        """
        for name in (addition, against):
            if name not in self.additions:
                raise SettingError(f"There is no addition {name!r}; expected one of {', '.join(self.additions)}.")
        both = self.finished(addition, against)
        pairs = [self.units[addition, seed].values[-1] - self.units[against, seed].values[-1] for seed in both]
        values: Floats = np.array(pairs, np.float64).reshape(len(both), len(self.tests))
        mean, half = interval(values)
        return Difference(addition, against, values, mean, mean - half, mean + half)

    def rows(self) -> list[dict[str, Any]]:
        """Return one record an addition and test, for tables and files; differences are those to all others."""
        mean, deviation = self.mean(), self.deviation()
        records = []
        for place, name in enumerate(self.additions):
            counts = self.added(name)
            differences = [self.difference(name, other) for other in self.additions if other != name]
            for column, test in enumerate(self.tests):
                record: dict[str, Any] = {
                    "addition": name,
                    "test": test,
                    "seeds": len(self.finished(name)),
                    "added": float(np.mean(counts)) if counts else np.nan,
                    "unit": self.unit,
                    "epochs": self.epochs,
                    "before": mean[place, 0, column],
                    "mean": mean[place, -1, column],
                    "deviation": deviation[place, -1, column],
                }
                for one in differences:
                    record |= {
                        f"minus_{one.against}": one.mean[column],
                        f"minus_{one.against}_low": one.low[column],
                        f"minus_{one.against}_high": one.high[column],
                    }
                records.append(record)
        return records


def interval(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean of every column, and half of the width of its confidence interval.

    Parameters
    ----------
    values : ndarray, float64 (n, columns)
        Differences of pairs.

    Returns
    -------
    mean, half : ndarray, float64 (columns,)
        NaN where there are no values; half NaN with fewer than two.
    """
    count = len(values)
    nothing = np.full(values.shape[1], np.nan)
    if count < 2:
        return (values[0] if count else nothing), nothing
    from scipy.stats import t

    spread = values.std(axis=0, ddof=1) / np.sqrt(count)
    return values.mean(axis=0), np.asarray(t.ppf((1 + CONFIDENCE) / 2, count - 1) * spread)
