"""Labels of inputs, one class or several an input, checked once and in one form."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.errors import DataError

Ints = NDArray[np.int64]


def check_labels(labels: ArrayLike, classes: int, what: str = "labels") -> NDArray[Any]:
    """Return labels as int64 (n,), one class an input, or as bool (n, classes), any number of classes an input.

    Parameters
    ----------
    labels : array
        Whole numbers in 0..classes - 1 (n,), or zeros and ones (n, classes).
    classes : int
    what : str
        Name of the labels in a refusal.

    Raises
    ------
    DataError
        If there are none, or they are of another form or out of range.
    """
    array = np.asarray(labels)
    if array.ndim == 2:
        if array.shape[1] != classes:
            raise DataError(f"The {what} have {array.shape[1]} columns; expected one for each of {classes} classes.")
        if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
            raise DataError(f"The {what} hold other values than 0 and 1; expected 1 where an input has the class.")
        found: NDArray[Any] = array.astype(bool)
    elif array.ndim == 1 and array.dtype.kind in "iu":
        outside = np.flatnonzero((array < 0) | (array >= classes))
        if len(outside):
            raise DataError(
                f"The {what} must lie in 0..{classes - 1}, but {len(outside):,} of {len(array):,} do not; the first "
                f"is {array[outside[0]]}, of input {outside[0]}."
            )
        found = array.astype(np.int64)
    else:
        raise DataError(
            f"The {what} must be whole numbers of shape (n,), or zeros and ones of shape (n, {classes}); found "
            f"{array.dtype} of shape {array.shape}."
        )
    if not len(found):
        raise DataError(f"There are no {what}: expected at least one.")
    return found


def check_together(true: NDArray[Any], predicted: NDArray[Any]) -> None:
    """Refuse right answers and predictions that cannot be of the same inputs.

    Raises
    ------
    DataError
        If their numbers differ, or one holds a class an input and the other several.
    """
    if len(true) != len(predicted):
        raise DataError(
            f"There are {len(true):,} true labels and {len(predicted):,} predictions; expected both of the same inputs."
        )
    if true.ndim != predicted.ndim:
        raise DataError(
            "Expected true labels and predictions of one form: a class an input, or 0 and 1 for each class."
        )


def pairs_of(labels: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return inputs and classes (k,), one pair for each class that an input has, sorted by class."""
    if labels.ndim == 2:
        classes, rows = np.nonzero(labels.T)
        return rows.astype(np.int64), classes.astype(np.int64)
    rows = np.argsort(labels, kind="stable")
    return rows.astype(np.int64), labels[rows]


def count_classes(labels: NDArray[Any], classes: int) -> Ints:
    """Return how many inputs have each class, int64 (classes,)."""
    if labels.ndim == 2:
        return np.asarray(labels.sum(0), np.int64)
    return np.bincount(labels, minlength=classes).astype(np.int64)
