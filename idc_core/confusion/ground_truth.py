"""Labels of inputs, and the confusion and disparity of classes that they show."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idc_core.errors import DataError, SettingError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[Any]
"""One class per input, int64 (n,), or truth values (n, classes)."""

Form = Literal["equation", "artefact"]

_FEWEST = 10
"""Images that a direction of a multi-label confusion needs at least to have a value."""


def check_form(form: str) -> None:
    """Refuse an unknown form."""
    if form not in ("equation", "artefact"):
        raise SettingError(f"form must be 'equation' or 'artefact', not {form!r}.")


def type1_confusion(true: ArrayLike, predicted: ArrayLike, classes: int, *, fewest: int = _FEWEST) -> Floats:
    """Return how often an input of one class is predicted as another one instead, float64 (classes, classes).

    Labels are int (n,), or 0 and 1 (n, classes). [a, b] is the share of inputs of class a predicted as b. With several
    labels: of the inputs with a and without b in the truth, `fewest` at least, the share with b and without a
    predicted. NaN on the diagonal and where undefined. Raises DataError for labels out of range, of another form, or
    not of the same inputs. Tian et al., ICSE 2020, section 2, type 1 errors.
    """
    right, predictions = _labels(true, predicted, classes)
    if right.ndim == 2:
        return _shares(right & ~predictions, ~right & predictions, right, fewest)
    counts = np.bincount(right * classes + predictions, minlength=classes * classes).reshape(classes, classes)
    of_class = np.bincount(right, minlength=classes)[:, None]
    shares: Floats = np.divide(counts, of_class, out=np.full(counts.shape, np.nan), where=of_class > 0)
    np.fill_diagonal(shares, np.nan)
    return shares


def type2_confusion(true: ArrayLike, predicted: ArrayLike, *, fewest: int = _FEWEST) -> Floats:
    """Return how often a class is predicted beside another one that alone is there; labels of 0 and 1 (n, classes).

    [a, b], float64 (classes, classes): of the inputs with a and without b in the truth, the share with both predicted.
    NaN on the diagonal and for fewer than `fewest` inputs. Errors as `type1_confusion`. Tian et al., section 2, type 2
    errors.
    """
    shape = np.shape(true)
    if len(shape) != 2:
        raise DataError("Type 2 confusion needs several labels per input: zeros and ones of shape (n, classes).")
    right, predictions = _labels(true, predicted, shape[1])
    return _shares(right & predictions, ~right & predictions, right, fewest)


def inputs_behind(true: ArrayLike, classes: int) -> Floats:
    """Return how many inputs a confusion by direction is the share of, float64 (classes, classes).

    [a, b] counts the inputs of class a; with several labels those with a and without b. Labels as in `type1_confusion`.
    """
    right = check_labels(true, classes, "true labels")
    if right.ndim == 2:
        return _product(right, ~right)
    counts: Floats = np.repeat(count_classes(right, classes).astype(np.float64)[:, None], classes, axis=1)
    return counts


def pair_confusion(directional: NDArray[np.floating]) -> Floats:
    """Return the confusion of every two classes: the mean of both directions, or one where the other is missing.

    Symmetric float64 (classes, classes), NaN on the diagonal, from `type1_confusion` or `type2_confusion`.
    """
    directed, other = _square(directional), _square(directional).T
    pair = np.where(np.isnan(directed), other, np.where(np.isnan(other), directed, (directed + other) / 2))
    np.fill_diagonal(pair, np.nan)
    return pair


def average_disparity(directional: NDArray[np.floating], form: Form = "equation") -> Floats:
    """Return how unequally two classes are confused with third ones: the true bias of the network between them.

    Takes `type1_confusion` or `type2_confusion`; returns symmetric float64 (classes, classes), the mean over third
    classes c of ``|confusion(a, c) - confusion(b, c)|``, where defined; NaN on the diagonal. The published program
    ("artefact") takes the sum of both directions instead of their mean, and 0 for what is missing. Raises DataError
    below three classes. Tian et al., ICSE 2020, section 3.
    """
    check_form(form)
    directions = _square(directional)
    if len(directions) < 3:
        raise DataError(
            f"Disparity compares with third classes, so it needs three or more; there are {len(directions)}."
        )
    if form == "artefact":
        known = np.nan_to_num(directions)
        pair = known + known.T
        np.fill_diagonal(pair, np.nan)
    else:
        pair = pair_confusion(directions)
    total, terms = np.zeros_like(pair), np.zeros_like(pair)
    for third in pair:
        # A class's confusion with itself is NaN, so that the pair's own classes are no third ones.
        difference = np.abs(third[:, None] - third[None, :])
        there = ~np.isnan(difference)
        np.add(total, difference, out=total, where=there)
        terms += there
    disparity = np.divide(total, terms, out=np.full_like(total, np.nan), where=terms > 0)
    np.fill_diagonal(disparity, np.nan)
    return disparity


def _labels(true: ArrayLike, predicted: ArrayLike, classes: int) -> tuple[Labels, Labels]:
    right = check_labels(true, classes, "true labels")
    predictions = check_labels(predicted, classes, "predictions")
    check_together(right, predictions)
    return right, predictions


def _shares(
    with_first: NDArray[np.bool_], with_second: NDArray[np.bool_], right: NDArray[np.bool_], fewest: int
) -> Floats:
    """Return counts of inputs with both parts over those with the first class and without the second in the truth."""
    counts = _product(with_first, with_second)
    images = _product(right, ~right)
    shares: Floats = np.divide(counts, images, out=np.full(counts.shape, np.nan), where=images >= max(1, fewest))
    np.fill_diagonal(shares, np.nan)
    return shares


def _product(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> Floats:
    """Count the inputs that have a column of the one and a column of the other."""
    return np.asarray(one.T.astype(np.float64) @ other.astype(np.float64))


def _square(directional: NDArray[np.floating]) -> Floats:
    matrix = np.asarray(directional, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"Expected one value for every two classes, (classes, classes); found {matrix.shape}.")
    return matrix


def check_labels(labels: ArrayLike, classes: int, what: str = "labels") -> Labels:
    """Return labels as int64 (n,), one class per input, or as bool (n, classes); refuse others, naming `what`."""
    array = np.asarray(labels)
    if array.ndim == 2:
        if array.shape[1] != classes:
            raise DataError(f"The {what} have {array.shape[1]} columns; expected one for each of {classes} classes.")
        if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
            raise DataError(f"The {what} hold other values than 0 and 1; expected 1 where an input has the class.")
        checked: Labels = array.astype(bool)
    elif array.ndim == 1 and array.dtype.kind in "iu":
        outside = np.flatnonzero((array < 0) | (array >= classes))
        if len(outside):
            raise DataError(
                f"The {what} must lie in 0..{classes - 1}, but {len(outside):,} of {len(array):,} do not; the first "
                f"is {array[outside[0]]}, of input {outside[0]}."
            )
        checked = array.astype(np.int64)
    else:
        raise DataError(
            f"The {what} must be whole numbers of shape (n,), or zeros and ones of shape (n, {classes}); found "
            f"{array.dtype} of shape {array.shape}."
        )
    if not len(checked):
        raise DataError(f"There are no {what}: expected at least one.")
    return checked


def check_together(true: Labels, predicted: Labels) -> None:
    """Refuse true labels and predictions whose numbers or forms differ."""
    if len(true) != len(predicted):
        raise DataError(
            f"There are {len(true):,} true labels and {len(predicted):,} predictions; expected both of the same inputs."
        )
    if true.ndim != predicted.ndim:
        raise DataError(
            "Expected true labels and predictions of one form: one class per input, or 0 and 1 for each class."
        )


def count_classes(labels: Labels, classes: int) -> Ints:
    """Return how many inputs have each class, int64 (classes,)."""
    if labels.ndim == 2:
        return np.asarray(labels.sum(0), np.int64)
    return np.bincount(labels, minlength=classes).astype(np.int64)
