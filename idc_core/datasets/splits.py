"""Which items are tests: told by names such as train and test, or drawn with a seed."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError

_WORDS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "t10k": "test",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
}

_SIGNS = r"[_\-. ]+"
_HUMPS = r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
"""Where names such as trainX and XTest are parted."""


def named_split(name: str) -> tuple[str, str]:
    """Return the split that a name says, and the rest of the name: "x_train" gives ("train", "x").

    The split is "train", "test", "validation", or "" where the name says none.
    """
    for between in (_SIGNS, _HUMPS):
        parts = [part for part in re.split(between, name) if part]
        for place in (0, -1):
            split = _WORDS.get(parts[place].lower()) if parts else None
            if split is not None:
                del parts[place]
                return split, "_".join(parts)
    return "", "_".join(part for part in re.split(_SIGNS, name) if part)


def chosen_splits(splits: Iterable[str], where: str) -> tuple[dict[str, str], str]:
    """Choose which splits of the files are "train" and "test".

    Parameters
    ----------
    splits : iterable of str
        Those that there are, of "train", "validation" and "test".
    where : str
        What is read, for messages: the beginning of a sentence.

    Returns
    -------
    dict of str to str
        "train" and "test" to one of them each; without a test split the validation split is it.
    str
        What was done, in words.

    Raises
    ------
    DataError
        If the files have no training split, or nothing beside it.
    """
    names = set(splits)
    test = "test" if "test" in names else "validation"
    if "train" not in names or test not in names:
        raise DataError(
            f"{where} has the split {' and '.join(sorted(names))} alone; expected train and test, or names without "
            "splits, of which tests are drawn."
        )
    validated = "" if test == "test" else ", tests from validation"
    left = "; the validation split is left out" if {"test", "validation"} <= names else ""
    return {"train": "train", "test": test}, f"split as given{validated}{left}"


def drawn_split(targets: NDArray[np.generic], share: float, seed: int, where: str) -> dict[str, NDArray[np.int64]]:
    """Draw which items are tests, so that every class has its share among them.

    Parameters
    ----------
    targets : ndarray (n,)
        Class numbers; floats are those of a regression, which has no classes.
    share : float
        Part of the items that become tests; at least one does, and one does not.
    seed : int
        The same seed draws the same tests.
    where : str
        What is read, for messages: the beginning of a sentence.

    Returns
    -------
    dict of str to ndarray of int64
        Positions of "train" and "test", each in a drawn order: the first items of files that are sorted by class are
        no fair sample.

    Raises
    ------
    DataError
        If there are fewer than two items.
    """
    count = len(targets)
    if count < 2:
        raise DataError(f"{where} has {count} items; expected at least 2, for training and for testing.")
    # RandomState, not default_rng: its stream is frozen (NEP 19), so the split is the same with every numpy.
    random = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))
    order = random.permutation(count)
    classes = np.zeros(count, np.int64) if targets.dtype.kind == "f" else np.unique(targets, return_inverse=True)[1]
    tests = min(max(1, round(share * count)), count - 1)
    sizes = _sizes(np.bincount(classes), tests)
    # The first of every class in the drawn order.
    ranks = np.empty(count, np.int64)
    ordered = classes[order]
    by_class = np.argsort(ordered, kind="stable")
    starts = np.cumsum(np.bincount(ordered)) - np.bincount(ordered)
    ranks[by_class] = np.arange(count) - starts[ordered[by_class]]
    is_test = ranks < sizes[ordered]
    return {"train": order[~is_test].astype(np.int64), "test": order[is_test].astype(np.int64)}


def _sizes(counts: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """Return how many of each class become tests: whole shares first, then the largest remainders."""
    shares = counts * (wanted / counts.sum())
    sizes: NDArray[np.int64] = np.floor(shares).astype(np.int64)
    left = wanted - int(sizes.sum())
    sizes[np.argsort(sizes - shares, kind="stable")[:left]] += 1
    return sizes


def said_draw(share: float, seed: int) -> str:
    """Say of a drawn split how it was drawn."""
    return f"{100 * share:.4g} % drawn as tests, seed {seed}"
