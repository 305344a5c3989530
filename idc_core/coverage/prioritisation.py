"""Which tests to run first: uncertainty of the scores, orders of tests, and how early an order detects the faults."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats, Ints
from idc_core.coverage.profiles import Profiles
from idc_core.errors import DataError, SettingError
from idc_core.evidence.draws import against_draws
from idc_core.evidence.finding import Finding


@dataclass(frozen=True)
class Uncertainty:
    """A measure of how unsure the network is of an input."""

    name: str
    label: str
    help: str
    citation: str
    of_probabilities: Callable[[Floats], Floats]
    """From probabilities (n, classes), or (passes, n, classes), to uncertainties (n,), larger where less sure."""
    dropout: bool = False
    """Whether it compares passes with dropout, as `idc_core.coverage.mc_dropout.dropout_scores` makes them."""

    def __call__(self, scores: NDArray[np.floating]) -> Floats:
        """Return how unsure the network is of each input, float64 (n,), from scores before the softmax.

        Scores are (n, classes), or (passes, n, classes) where it compares passes with dropout.
        """
        scores = np.asarray(scores, np.float64)
        form = "(passes, n, classes)" if self.dropout else "(n, classes)"
        if scores.ndim != form.count(",") + 1 or scores.shape[-1] < 2 or not np.isfinite(scores).all():
            raise DataError(f"Expected finite scores {form} of two classes or more, got shape {scores.shape}.")
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return self.of_probabilities(powers / powers.sum(-1, keepdims=True))


def _entropy(probabilities: Floats) -> Floats:
    safe = np.where(probabilities > 0, probabilities, 1.0)
    return np.asarray(-(probabilities * np.log(safe)).sum(-1))


def _margin(probabilities: Floats) -> Floats:
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (two[:, 1] - two[:, 0]))


def _variation_ratio(probabilities: Floats) -> Floats:
    votes = probabilities.argmax(2)
    counts = np.stack([(votes == label).sum(0) for label in range(probabilities.shape[2])])
    return np.asarray(1.0 - counts.max(0) / len(votes))


def _mutual_information(probabilities: Floats) -> Floats:
    return np.asarray(np.maximum(_entropy(probabilities.mean(0)) - _entropy(probabilities).mean(0), 0.0))


UNCERTAINTIES: dict[str, Uncertainty] = {
    entry.name: entry
    for entry in (
        Uncertainty(
            "deepgini",
            "DeepGini",
            "Probability that two classes drawn from the prediction differ, 0 to 1 - 1/classes.",
            "Feng et al., ISSTA 2020, definition 1: 1 - sum of p^2",
            lambda probabilities: np.asarray(1.0 - np.square(probabilities).sum(1)),
        ),
        Uncertainty(
            "entropy",
            "Entropy",
            "Entropy of the predicted probabilities, in nats, 0 to ln(classes).",
            "Byun, Sharma, Vijayakumar, Rayadurgam, Cofer, AITest 2019: -sum of p ln p",
            _entropy,
        ),
        Uncertainty(
            "margin",
            "Margin",
            "1 minus the difference of the two largest probabilities, 0 to 1.",
            "Scheffer, Decomain, Wrobel, IDA 2001: 1 - (p1 - p2)",
            _margin,
        ),
        Uncertainty(
            "confidence",
            "Softmax confidence",
            "1 minus the largest probability, 0 to 1 - 1/classes.",
            "Hendrycks, Gimpel, ICLR 2017: 1 - max p",
            lambda probabilities: np.asarray(1.0 - probabilities.max(1)),
        ),
        Uncertainty(
            "variation-ratio",
            "MC-dropout, variation ratio",
            "Share of passes with dropout that predict another class than most do, 0 to 1 - 1/classes.",
            "Gal, Ghahramani, ICML 2016: 1 - votes of the commonest class / passes",
            _variation_ratio,
            dropout=True,
        ),
        Uncertainty(
            "mutual-information",
            "MC-dropout, mutual information",
            "Entropy of the mean prediction minus the mean entropy of passes with dropout, in nats.",
            "Gal, Islam, Ghahramani, ICML 2017: H(mean p) - mean H(p)",
            _mutual_information,
            dropout=True,
        ),
    )
}
"""Uncertainties by short lower-case name."""


def most_first(values: NDArray[np.number]) -> Ints:
    """Order inputs by a value (n,), largest first, of equal ones the first; positions, int64 (n,)."""
    if np.isnan(values).any():
        raise DataError("Expected a number for every input to order by, got nan.")
    return np.argsort(-np.asarray(values, np.float64), kind="stable")


def _additional_first(profiles: Profiles) -> Ints:
    """Order inputs so that each covers as many targets as possible that none before it covers; int64 (n,).

    Of equally good inputs the first comes first; when nothing new is left, the number of covered targets decides. The
    coverage-additional method (S. Yoo, M. Harman, 2012; dnn-tip's CAM).
    """
    counts = profiles.counts
    width = int(profiles.targets.max(initial=-1)) + 1
    fresh = np.ones(width, bool)
    queue = [(-int(count), place) for place, count in enumerate(counts)]
    heapq.heapify(queue)
    order: list[int] = []
    while queue and queue[0][0]:
        claimed, place = heapq.heappop(queue)
        targets = profiles.targets[profiles.starts[place] : profiles.starts[place + 1]]
        gain = int(np.count_nonzero(fresh[targets]))
        if gain == -claimed:
            order.append(place)
            fresh[targets] = False
        else:  # a gain can only fall, so that it is counted again only when the input would be next
            heapq.heappush(queue, (-gain, place))
    rest = np.setdiff1d(np.arange(len(profiles)), order)
    return np.concatenate([np.array(order, np.int64), rest[most_first(counts[rest])]])


def apfd(order: Ints, wrong: NDArray[np.bool_]) -> float:
    """Return the average percentage of faults detected, 0..1: 1 - (sum of their places) / (k n) + 1 / (2 n).

    From positions of all inputs in order (n,) and whether the network is wrong on each (n,); k are. G. Rothermel,
    R. Untch, C. Chu, M. J. Harrold, 2001, with every misclassified input a fault of its own, as in DeepGini (Feng et
    al., ISSTA 2020). 0.5 for a random order.
    """
    count = len(wrong)
    if not np.array_equal(np.sort(order), np.arange(count)):
        raise SettingError(f"Expected an order of all {count} inputs, each once.")
    places = np.flatnonzero(np.asarray(wrong, bool)[order]) + 1
    if not len(places):
        raise DataError("The network is right on all these inputs, so no order finds mistakes earlier than another.")
    return float(1 - places.sum() / (len(places) * count) + 1 / (2 * count))


_By = Literal["additional", "total", "value", "uncertainty"]

_DRAWS = 1_999
"""Random orders that the best one is compared with: enough for one of 50 to stand out."""

_POINTS = 200
"""Numbers of tests at which curves are given."""


@dataclass(frozen=True, eq=False)
class Order:
    """All tests in the order in which one criterion would run them."""

    name: str  # short name of the criterion or uncertainty
    by: _By
    """The most targets that no test before covers; the most targets; the largest value behind the targets (surprise, or
    what the test adds); the least confident prediction."""
    positions: Ints  # (n,), positions of tests, first to last

    @property
    def key(self) -> str:
        """Name of the order among all."""
        return self.name if self.by in ("additional", "uncertainty") else f"{self.name}-{self.by}"


def orders_by(
    profiles: Mapping[str, Profiles],
    scores: NDArray[np.floating] | None = None,
    sampled: NDArray[np.floating] | None = None,
) -> list[Order]:
    """Order tests by every criterion's profiles, and by every uncertainty.

    A criterion with targets has an additional order, and one by how many each test covers where tests differ in that
    (the coverage-total method; S. Yoo, M. Harman, 2012; dnn-tip's CTM); one with values has an order by these.
    Uncertainties come from scores (n, classes), those of dropout from scores (passes, n, classes), where given.
    """
    orders = []
    for name, profile in profiles.items():
        if profile.total != 0:
            orders.append(Order(name, "additional", _additional_first(profile)))
            if len(np.unique(profile.counts)) > 1:
                orders.append(Order(name, "total", most_first(profile.counts)))
        if profile.values is not None:
            orders.append(Order(name, "value", most_first(profile.values)))
    for name, measure in UNCERTAINTIES.items():
        seen = sampled if measure.dropout else scores
        if seen is not None and seen.shape[-1] > 1:
            orders.append(Order(name, "uncertainty", most_first(measure(seen))))
    return orders


def _faults_found(order: Ints, wrong: NDArray[np.bool_], tests: Ints) -> Floats:
    """Return the share of the misclassified tests among the first `tests` (p,) of an order (n,), float64 (p,)."""
    met = np.concatenate([[0], np.cumsum(np.asarray(wrong, bool)[order])])
    return np.asarray(met[tests] / met[-1])


@dataclass(frozen=True, eq=False)
class FaultDetection:
    """Misclassified tests detected by orders of the same tests."""

    apfd: dict[str, float]  # by key of the order
    tests: Ints  # (p,), numbers of tests at which the curves are given
    curves: dict[str, Floats]  # (p,), share of the misclassified tests among so many first ones, by key of the order
    random: Floats  # (r,), APFD of random orders
    mean: Floats  # (p,), mean share by the random orders
    low: Floats  # smallest share by one of them
    high: Floats  # largest share


def detect_faults(orders: list[Order], wrong: NDArray[np.bool_], *, seeds: int = 20) -> FaultDetection:
    """Compare orders by how early they detect the misclassified tests, with random orders (seeds 0, 1, ...)."""
    if seeds < 1:
        raise SettingError(f"Expected at least one random order, got seeds={seeds}.")
    tests = np.unique(np.linspace(0, len(wrong), min(len(wrong), _POINTS) + 1).round().astype(np.int64))
    random = [np.random.default_rng(seed).permutation(len(wrong)) for seed in range(seeds)]
    baseline = np.array([apfd(order, wrong) for order in random])
    shares = np.stack([_faults_found(order, wrong, tests) for order in random])
    return FaultDetection(
        apfd={order.key: apfd(order.positions, wrong) for order in orders},
        tests=tests,
        curves={order.key: _faults_found(order.positions, wrong, tests) for order in orders},
        random=baseline,
        mean=shares.mean(0),
        low=shares.min(0),
        high=shares.max(0),
    )


def earliest(found: FaultDetection, wrong: NDArray[np.bool_], labels: Mapping[str, str], *, seed: int = 0) -> Finding:
    """Return the APFD of the order that detects the misclassified tests earliest, beside that of random orders.

    `labels` name the orders by their keys; it is the best of so many looks.
    """
    count, faults, random = len(wrong), int(wrong.sum()), np.random.default_rng(seed)
    places = [random.choice(count, faults, replace=False, shuffle=False).mean() + 1 for _ in range(_DRAWS)]
    best = max(found.apfd, key=lambda key: found.apfd[key])
    claim = f"Average percentage of faults detected (APFD) by {labels[best]}, the best of {len(found.apfd)} orders"
    drawn = 1 - np.array(places) / count + 1 / (2 * count)
    return replace(
        against_draws("order", claim, found.apfd[best], drawn, "in random orders", "%"), looks=len(found.apfd)
    )
