"""Results of retraining: networks, and means, deviations and paired differences over seeds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Task
from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import Control, Finding
from idc_core.evidence.paired import interval, p_values

_Floats = NDArray[np.float64]

_WEIGHT = "weight:"


@dataclass(frozen=True, eq=False)
class RetrainedNetwork:
    """One network, retrained with one addition and one seed."""

    values: _Floats
    """Accuracy, 0..1, or root mean squared error, (epochs + 1, tests): before training, then after every epoch."""
    added: int
    """Number of inputs added to the training data."""
    shown: NDArray[Any]
    """Some of the added inputs, (k, ...)."""
    shown_targets: NDArray[np.generic]
    weights: dict[str, NDArray[np.generic]]
    """State after the last epoch."""

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything as arrays by name."""
        named = {_WEIGHT + name: value for name, value in self.weights.items()}
        own = {"values": self.values, "added": np.array(self.added)}
        return {**own, "shown": self.shown, "shown_targets": self.shown_targets, **named}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the network that `arrays` came from; DataError where they are those of something else."""
        weights = {name.removeprefix(_WEIGHT): arrays[name] for name in arrays if name.startswith(_WEIGHT)}
        try:
            return cls(arrays["values"], int(arrays["added"]), arrays["shown"], arrays["shown_targets"], weights)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"The arrays {', '.join(arrays)[:200]} are not those of a retrained network.") from error


@dataclass(frozen=True, eq=False)
class Difference:
    """The paired difference of two additions after the last epoch.

    `values`, float64 (s, tests), are the first addition's accuracy (or error) minus the other's, of every seed that
    both are finished for; `mean`, `low` and `high`, float64 (tests,), are their mean and the ends of its confidence
    interval (Student's t, paired, `CONFIDENCE`), corrected for the number of tests (Holm). The ends are NaN below two
    seeds.
    """

    addition: str
    against: str
    values: _Floats
    mean: _Floats
    low: _Floats
    high: _Floats

    @property
    def exceeds(self) -> NDArray[np.bool_]:
        """Whether the difference is significant on each test: its interval excludes 0."""
        exceeds: NDArray[np.bool_] = (self.low > 0) | (self.high < 0)
        return exceeds


@dataclass(frozen=True, eq=False)
class Retraining:
    """Networks retrained with several additions and seeds, as far as they are finished."""

    additions: tuple[str, ...]
    seeds: tuple[int, ...]
    tests: tuple[str, ...]
    task: Task
    epochs: int
    steps: int
    """Of each epoch."""
    trained_on: int
    """Training inputs without additions."""
    start: str
    networks: dict[tuple[str, int], RetrainedNetwork] = field(repr=False)
    """By addition and seed."""

    @property
    def complete(self) -> bool:
        """Whether every addition is finished with every seed."""
        return len(self.networks) == len(self.additions) * len(self.seeds)

    @property
    def values(self) -> _Floats:
        """Accuracy or error, float64 (additions, seeds, epochs + 1, tests); NaN where a network is not finished."""
        empty = np.full((self.epochs + 1, len(self.tests)), np.nan)
        rows = [
            [self.networks[name, seed].values if (name, seed) in self.networks else empty for seed in self.seeds]
            for name in self.additions
        ]
        return np.array(rows, np.float64)

    @property
    def unit(self) -> str:
        """Accuracy or RMSE."""
        return "accuracy" if self.task == "classification" else "RMSE"

    def mean(self) -> _Floats:
        """Return the mean over the finished seeds, float64 (additions, epochs + 1, tests); NaN where there is none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanmean(self.values, axis=1))

    def deviation(self) -> _Floats:
        """Return the standard deviation over the finished seeds (n - 1), of the same shape; NaN below two seeds."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanstd(self.values, axis=1, ddof=1))

    def finished(self, *additions: str) -> list[int]:
        """Return the seeds that all these additions are finished for."""
        return [seed for seed in self.seeds if all((name, seed) in self.networks for name in additions)]

    def added(self, addition: str) -> list[int]:
        """Return the number of added inputs for every finished seed."""
        return [self.networks[addition, seed].added for seed in self.finished(addition)]

    def difference(self, addition: str, against: str) -> Difference:
        """Compare two additions after the last epoch, seed by seed."""
        for name in (addition, against):
            if name not in self.additions:
                raise SettingError(f"There is no addition {name!r}; expected one of {', '.join(self.additions)}.")
        both = self.finished(addition, against)
        pairs = [self.networks[addition, seed].values[-1] - self.networks[against, seed].values[-1] for seed in both]
        values: _Floats = np.array(pairs, np.float64).reshape(len(both), len(self.tests))
        mean, half = interval(values)
        return Difference(addition, against, values, mean, mean - half, mean + half)

    def most_different(self, addition: str, against: str) -> int:
        """Return the test on which two additions differ most certainly, by its column."""
        p = p_values(self.difference(addition, against).values)
        return int(np.nanargmin(p)) if np.isfinite(p).any() else 0

    def finding(self, addition: str, against: str, column: int, claim: str, what: str) -> Finding:
        """Return the accuracy or error of an addition on a test, beside that of another one; two seeds at least.

        `claim` and `what` are the words of the finding and of its control.
        """
        pair, both = self.difference(addition, against), self.finished(addition, against)
        own, other = (
            np.array([[self.networks[name, seed].values[-1, column]] for seed in both]) for name in (addition, against)
        )
        usual = other[0, 0]  # of what is not a difference, one value says nothing of the step
        mean, half = (float(value[0]) for value in interval(other - usual))
        return Finding(
            "retraining",
            claim,
            float(own.mean()),
            Control(what, mean + usual, mean + usual - half, mean + usual + half),
            float(pair.low[column]),
            float(pair.high[column]),
            float(p_values(pair.values)[column]),
            looks=len(self.tests),
            unit="%" if self.task == "classification" else "",
        )

    def rows(self) -> list[dict[str, str | float | None]]:
        """Return one record per addition and test, with the differences to all other additions."""
        mean, deviation = self.mean(), self.deviation()
        records = []
        for place, name in enumerate(self.additions):
            counts = self.added(name)
            differences = [self.difference(name, other) for other in self.additions if other != name]
            for column, test in enumerate(self.tests):
                record: dict[str, str | float | None] = {
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
                for difference in differences:
                    record |= {
                        f"minus_{difference.against}": difference.mean[column],
                        f"minus_{difference.against}_low": difference.low[column],
                        f"minus_{difference.against}_high": difference.high[column],
                    }
                records.append(record)
        return records
