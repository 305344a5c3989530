"""Findings about tests from counts, each beside what training inputs, other classes, equal rates or chance give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.statistics import wilson
from idc_core.evidence.finding import Control, Finding

if TYPE_CHECKING:
    from idc_core.base.arrays import Floats

_Counts = NDArray[np.int64]
_Where = Callable[[int], tuple[tuple[str, str], ...]]
"""What selects one of several things on a page, by its place among them."""

UNTESTED = "untested"
"""Subject of what training inputs reach and no test."""


_MOST_DRAWS, _MOST_NUMBERS = 4_999, 250_000
"""Random draws at most, and random numbers that all of them take."""

_NEVER = 1e-9
"""Probability below which a cell is left out of the draws."""


def uneven_group(
    subject: str, names: Sequence[str], tests: _Counts, training: _Counts, totals: tuple[int, int], where: _Where
) -> Finding | None:
    """Return the group of inputs whose share among the tests differs most from that among the training inputs.

    Parameters
    ----------
    subject : str
    names : sequence of str
        What the tests of each group are called: "Tests of class 7".
    tests, training : ndarray, int64 (groups,)
        Tests and training inputs in each group; groups may overlap.
    totals : pair of int
        Number of tests, and of training inputs.
    where : callable
        Gives `Finding.where` of a group.

    Returns
    -------
    Finding or None
        None where no group holds anything, or there is nothing to compare.

    Notes
    -----
    Fisher's exact test, twice the smaller tail. The control's range is that of a new sample of as many tests (beta
    binomial, Jeffreys' prior); the interval of the difference is Newcombe's (1998, method 10).
    """
    from idc_core.base.scipy_parts import stats

    count, learnt = totals
    looked = np.flatnonzero(tests + training)
    if not len(looked) or not count or not learnt:
        return None
    inside = tests[looked]
    odds = count + learnt, inside + training[looked], count
    p = np.minimum(1.0, 2 * np.minimum(stats.hypergeom.cdf(inside, *odds), stats.hypergeom.sf(inside - 1, *odds)))
    best = int(np.lexsort((-np.abs(inside / count - training[looked] / learnt), p))[0])
    group = int(looked[best])
    own = count + learnt, int(tests[group] + training[group]), count
    least, most = max(0, own[1] - learnt), min(own[1], count)
    extreme = min(stats.hypergeom.pmf(least, *own), stats.hypergeom.pmf(most, *own))
    drawn = stats.betabinom(count, training[group] + 0.5, learnt - training[group] + 0.5)
    low, high = _difference(int(tests[group]), count, int(training[group]), learnt)
    expected = float(training[group]) * count / learnt
    spread = float(drawn.ppf(0.025)), float(drawn.ppf(0.975))
    return Finding(
        subject=subject,
        claim=names[group],
        number=float(tests[group]),
        control=Control("expected from the training inputs", expected, *spread),
        low=low * count,
        high=high * count,
        p=float(p[best]),
        least_p=min(1.0, 2 * float(extreme), float(p[best])),
        looks=len(looked),
        where=where(group),
    )


def low_recall(names: Sequence[str], tests: _Counts, correct: _Counts, where: _Where) -> Finding | None:
    """Return the class whose recall is lowest beside that of the other classes.

    Parameters
    ----------
    names : sequence of str
        Names of the classes.
    tests, correct : ndarray, int64 (classes,)
        Tests of each class, and those classified correctly.
    where : callable
        Gives `Finding.where` of a class.

    Returns
    -------
    Finding or None
        None where fewer than two classes have tests.

    Notes
    -----
    Fisher's exact test in the direction of a lower recall; intervals are Wilson's and Newcombe's.
    """
    from idc_core.base.scipy_parts import stats

    looked = np.flatnonzero(tests)
    if len(looked) < 2:
        return None
    total, right = int(tests.sum()), int(correct.sum())
    p = stats.hypergeom.cdf(correct[looked], total, right, tests[looked])
    best = int(np.lexsort((correct[looked] / tests[looked], p))[0])
    own = int(looked[best])
    n, k = int(tests[own]), int(correct[own])
    least = float(stats.hypergeom.pmf(max(0, n - (total - right)), total, right, n))
    rest, rest_right = total - n, right - k
    low, high = _difference(k, n, rest_right, rest)
    return Finding(
        subject="recall",
        claim=f"Recall of class {names[own]}",
        number=k / n,
        control=Control("for the other classes", rest_right / rest, *_interval(rest_right, rest)),
        low=low,
        high=high,
        p=min(1.0, float(p[best])),
        least_p=min(least, float(p[best])),
        looks=len(looked),
        unit="%",
        where=where(own),
    )


def confused_pair(
    names: Sequence[str],
    true: NDArray[np.integer],
    predicted: NDArray[np.integer],
    where: Callable[[int, int], tuple[tuple[str, str], ...]],
) -> Finding | None:
    """Return the class that is classified as which other one most often beside equal rates for all pairs.

    Parameters
    ----------
    names : sequence of str
        Names of the classes.
    true, predicted : ndarray, int (tests,)
        Classes of the tests.
    where : callable
        Gives `Finding.where` of a true and a predicted class.

    Returns
    -------
    Finding or None
        None where no test is misclassified, or there are fewer than three classes.

    Notes
    -----
    At equal rates every test is misclassified as any other class with one probability, so that a pair's share of the
    errors is that of its true class among the tests, divided by the other classes. Exact binomial test in the
    direction of more; the interval is Wilson's.
    """
    from idc_core.base.scipy_parts import stats

    wrong = true != predicted
    classes, errors = len(names), int(wrong.sum())
    if classes < 3 or not errors:
        return None
    pairs, confused = np.unique(true[wrong].astype(np.int64) * classes + predicted[wrong], return_counts=True)
    tests = np.bincount(true, minlength=classes)
    shares = tests[pairs // classes] / ((classes - 1) * len(true))
    p = stats.binom.sf(confused - 1, errors, shares)
    best = int(np.lexsort((-confused, p))[0])
    (a, b), count, share = divmod(int(pairs[best]), classes), int(confused[best]), float(shares[best])
    low, high = (errors * (end - share) for end in _interval(count, errors))
    drawn = stats.binom(errors, share)
    return Finding(
        subject="pair",
        claim=f"Tests of class {names[a]} classified as {names[b]}",
        number=float(count),
        control=Control(
            "at equal rates for all pairs", errors * share, float(drawn.ppf(0.025)), float(drawn.ppf(0.975))
        ),
        low=low,
        high=high,
        p=float(p[best]),
        least_p=min(share**errors, float(p[best])),
        looks=int((tests > 0).sum()) * (classes - 1),
        where=where(a, b),
    )


def accuracy_of_added(claim: str, added: tuple[int, int], tests: tuple[int, int]) -> Finding:
    """Compare the accuracy on added inputs with that on the tests.

    Parameters
    ----------
    claim : str
        "Accuracy on 12 accepted inputs".
    added, tests : pair of int
        How many of either are classified correctly, and how many there are, at least one.

    Notes
    -----
    Fisher's exact test, twice the smaller tail; intervals are Wilson's and Newcombe's.
    """
    from idc_core.base.scipy_parts import stats

    (right, count), (others, number) = added, tests
    odds = count + number, right + others, count
    least, most = max(0, right + others - number), min(right + others, count)
    extreme = min(stats.hypergeom.pmf(least, *odds), stats.hypergeom.pmf(most, *odds))
    tail = min(stats.hypergeom.cdf(right, *odds), stats.hypergeom.sf(right - 1, *odds))
    p = min(1.0, 2 * float(tail))
    low, high = _difference(right, count, others, number)
    return Finding(
        subject="accuracy-of-added",
        claim=claim,
        number=right / count,
        control=Control("on the tests", others / number, *_interval(others, number)),
        low=low,
        high=high,
        p=p,
        least_p=min(1.0, 2 * float(extreme), p),
        unit="%",
    )


def errors_alone(tests: _Counts, wrong: _Counts, where: tuple[tuple[str, str], ...]) -> Finding | None:
    """Compare the cells that only misclassified tests reach with those of as many errors at random.

    `tests` and `wrong` (cells,) are the tests of each covered cell and the misclassified ones. None where no test, or
    every test, is misclassified.
    """
    errors = int(wrong.sum())
    if not 0 < errors < int(tests.sum()):
        return None
    found = int((tests == wrong).sum())
    claim = "Cells reached only by misclassified tests"
    return _beside_chance("errors-only", claim, found, tests, errors, "if errors were spread at random", where)


def training_alone(tests: _Counts, training: _Counts, where: tuple[tuple[str, str], ...]) -> Finding | None:
    """Compare the cells that training inputs reach and no test with those of as many tests at random.

    `tests` and `training` (cells,) are the inputs of either kind in each cell that any of them reaches. At random means
    that all inputs are mixed: tests that the training inputs' distribution gives would do as well.
    """
    if not tests.sum() or not training.sum():
        return None
    found = int((tests == 0).sum())
    claim = "Untested combinations that training inputs reach"
    drawn = "for as many inputs drawn at random"
    return _beside_chance(UNTESTED, claim, found, tests + training, int(training.sum()), drawn, where)


def _beside_chance(
    subject: str, claim: str, found: int, sizes: _Counts, marked: int, what: str, where: tuple[tuple[str, str], ...]
) -> Finding:
    """Compare the number of cells all of whose inputs are marked with that of as many marks at random."""
    expected, draws = _all_marked(sizes, marked)
    most = int(np.searchsorted(np.cumsum(np.sort(sizes)), marked, side="right"))
    p, fewest, largest = (_two_sided(draws, number) for number in (found, 0, most))
    low, high = (float(end) for end in np.quantile(draws, (0.025, 0.975), method="nearest"))
    control = Control(what, expected, low, high)
    least = min(fewest, largest, p)
    return Finding(subject, claim, float(found), control, found - high, found - low, p, least, where=where)


def _two_sided(draws: _Counts, number: int) -> float:
    """Return twice the share of draws at least as far to one side as a number, itself counted among them."""
    tail = min(int((draws >= number).sum()), int((draws <= number).sum()))
    return min(1.0, 2 * (1 + tail) / (1 + len(draws)))


def _all_marked(sizes: _Counts, marked: int, seed: int = 0) -> tuple[float, _Counts]:
    """Return how many of the cells with so many inputs have only marked ones, of `marked` at random: mean and draws.

    The mean is exact; draws are (draws,).
    """
    total = int(sizes.sum())
    kept = np.cumprod((marked - np.arange(marked)) / (total - np.arange(marked)))
    chances: Floats = np.where(sizes <= marked, kept[np.minimum(sizes, marked) - 1], 0.0)
    possible = sizes[chances > _NEVER]
    # Most cells hold one input: how many of these are marked is one random number, whichever they are.
    single, larger = int((possible == 1).sum()), possible[possible > 1]
    draws = max(499, min(_MOST_DRAWS, _MOST_NUMBERS // (len(larger) + 1)))
    colours = [single, *larger.tolist(), total - int(possible.sum())]
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(colours, marked, size=draws, method="marginals")
    return float(chances.sum()), drawn[:, 0] + (drawn[:, 1:-1] == larger).sum(axis=1)


def _interval(count: int, trials: int) -> tuple[float, float]:
    """Return the ends of Wilson's 95 % interval of a share."""
    low, high = wilson(np.array([count / trials]), np.array([trials]))
    return float(low[0]), float(high[0])


def _difference(count: int, trials: int, other: int, other_trials: int) -> tuple[float, float]:
    """Return the ends of Newcombe's 95 % interval of the first share less the second."""
    first, second = count / trials, other / other_trials
    (low, high), (below, above) = _interval(count, trials), _interval(other, other_trials)
    gap = first - second
    return gap - ((first - low) ** 2 + (above - second) ** 2) ** 0.5, gap + (
        (high - first) ** 2 + (second - below) ** 2
    ) ** 0.5
