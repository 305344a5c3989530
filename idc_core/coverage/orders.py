"""Orders in which criteria would run tests first, and how early each meets the misclassified ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.prioritisation import UNCERTAINTIES, additional_first, apfd, most_first
from idc_core.coverage.profiles import Profiles
from idc_core.errors import SettingError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
By = Literal["additional", "value", "uncertainty"]

POINTS = 200
"""Numbers of tests at which curves are given."""


@dataclass(frozen=True, eq=False)
class Order:
    """All tests in the order in which one criterion would run them.

    Attributes
    ----------
    name : str
        Short name of the criterion or uncertainty.
    by : {"additional", "value", "uncertainty"}
        The most targets that no test before covers; the largest value behind the targets (surprise, or what the test
        adds); the least certain answer.
    positions : ndarray, int64 (n,)
        Positions of tests, first to last.
    """

    name: str
    by: By
    positions: Ints

    @property
    def key(self) -> str:
        """Name of the order among all."""
        return self.name if self.by != "value" else f"{self.name}-value"


def orders_by(profiles: Mapping[str, Profiles], scores: NDArray[Any] | None = None) -> list[Order]:
    """Order tests by every criterion, and by every uncertainty.

    Parameters
    ----------
    profiles : mapping of str to Profiles
        Of all tests, by name of the criterion.
    scores : ndarray (n, classes), optional
        Scores of all tests before the softmax; None, or a single column, for a network without classes.

    Returns
    -------
    list of Order
        A criterion with targets has an additional order, one with values an order by these, surprise criteria both.
    """
    found = []
    for name, one in profiles.items():
        if one.total != 0:
            found.append(Order(name, "additional", additional_first(one)))
        if one.values is not None:
            found.append(Order(name, "value", most_first(one.values)))
    if scores is not None and scores.shape[1] > 1:
        found += [Order(name, "uncertainty", most_first(one(scores))) for name, one in UNCERTAINTIES.items()]
    return found


def found_by(order: NDArray[Any], wrong: NDArray[np.bool_], tests: NDArray[Any]) -> Floats:
    """Return the share of the misclassified tests among the first ones of an order.

    Parameters
    ----------
    order : ndarray of int (n,)
        Positions of all tests, first to last.
    wrong : ndarray of bool (n,)
        Whether the network is wrong on each test; at least one.
    tests : ndarray of int (p,)
        Numbers of tests, 0..n.

    Returns
    -------
    ndarray, float64 (p,)
    """
    met = np.concatenate([[0], np.cumsum(np.asarray(wrong, bool)[order])])
    return np.asarray(met[tests] / met[-1])


def curve_points(tests: int) -> Ints:
    """Return the numbers of tests at which curves are given, int64, from 0 to all tests."""
    return np.unique(np.linspace(0, tests, min(tests, POINTS) + 1).round().astype(np.int64))


@dataclass(frozen=True, eq=False)
class Finding:
    """How early orders of the same tests meet the misclassified ones.

    Attributes
    ----------
    apfd : dict of str to float
        By key of the order.
    tests : ndarray, int64 (p,)
        Numbers of tests at which the curves are given.
    curves : dict of str to ndarray, float64 (p,)
        Share of the misclassified tests among so many first ones, by key of the order.
    random : ndarray, float64 (r,)
        APFD of random orders.
    mean, low, high : ndarray, float64 (p,)
        The random orders' curves: their mean, and the smallest and largest share.
    """

    apfd: dict[str, float]
    tests: Ints
    curves: dict[str, Floats]
    random: Floats
    mean: Floats
    low: Floats
    high: Floats


def find_mistakes(orders: list[Order], wrong: NDArray[np.bool_], *, seeds: int = 20) -> Finding:
    """Compare orders by how early they meet the misclassified tests, with random orders as the baseline.

    Parameters
    ----------
    orders : list of Order
    wrong : ndarray of bool (n,)
        Whether the network is wrong on each test.
    seeds : int
        Random orders, of the seeds 0, 1, ...

    Returns
    -------
    Finding

    Raises
    ------
    DataError
        If the network is never wrong.
    SettingError
        If an order does not name every test once, or there is no seed.
    """
    if seeds < 1:
        raise SettingError(f"Expected at least one random order, got seeds={seeds}.")
    tests = curve_points(len(wrong))
    random = [np.random.default_rng(seed).permutation(len(wrong)) for seed in range(seeds)]
    baseline = np.array([apfd(order, wrong) for order in random])
    shares = np.stack([found_by(order, wrong, tests) for order in random])
    return Finding(
        apfd={order.key: apfd(order.positions, wrong) for order in orders},
        tests=tests,
        curves={order.key: found_by(order.positions, wrong, tests) for order in orders},
        random=baseline,
        mean=shares.mean(0),
        low=shares.min(0),
        high=shares.max(0),
    )
