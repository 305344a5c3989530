"""Between which classes a network is unfair: third classes lie closer to one than to the other. Needs no labels."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.confusion.ground_truth import Floats, Form, Ints, check_form
from idc_core.errors import DataError, SettingError

_Gate = NDArray[np.bool_]

_SMALLEST = 1e-5
"""Distances up to this one count for nothing in the published program."""


@dataclass(frozen=True)
class Triplet:
    """Two classes and a third one that is closer to the first, `near`, than to the second, by how much (0..1)."""

    near: int
    far: int
    third: int
    bias: float


def average_bias(
    distance: NDArray[np.floating],
    form: Form = "equation",
    filtered: bool = True,
    directional: NDArray[np.floating] | None = None,
    *,
    on_progress: Progress | None = None,
) -> Floats:
    """Return how unequally two classes lie to third ones, on average; needs no labels.

    `distance` (classes, classes) is that of `class_distance`; the result is symmetric float64 (classes, classes), 0..1
    (artefact: 0..0.5), larger is more biased, NaN on the diagonal and for undefined classes. With `filtered` a third
    class counts as 0 if it is further from both than `near_cutoff`. `directional` (classes, classes), true confusion
    from labels, is for the artefact only. Raises DataError below three defined classes or if the distances are no
    symmetric distances; SettingError if labels are given to the equations.

    Notes
    -----
    Tian et al., ICSE 2020, equations (3) and (4): ``|d(c,a) - d(c,b)| / (d(c,a) + d(c,b))``, its mean over third
    classes c with divisor M - 2, M the number of defined classes; 0 where both distances are 0. The published program
    takes ``|d(c,a) / (d(c,a) + d(c,b)) - 1/2|``, half of it; takes the filter's mean and deviation over the whole
    matrix, the zeros of the diagonal included, and compares strictly; and counts a triplet only where the labels show
    a confusion of c with a or b and both distances exceed 1e-5.
    """
    known, distances, gate = _prepared(distance, form, directional)
    size = len(known)
    rows, both = np.zeros((size, size)), np.zeros((size, size))
    for third, near, values in _values(distances, form, filtered, gate):
        # Triplets with a near first class are summed by row; those with two near ones would be there twice.
        rows[near] += values
        both[np.ix_(near, near)] += values[:, near]
        report(on_progress, third + 1, size, "third classes")
    average = (rows + rows.T - both) / (size - 2)
    np.fill_diagonal(average, np.nan)
    whole = np.full(np.shape(distance), np.nan)
    whole[np.ix_(known, known)] = average
    return whole


def most_biased(
    distance: NDArray[np.floating], most: int = 20, form: Form = "equation", filtered: bool = True
) -> list[Triplet]:
    """Return at most `most` triplets of largest bias, largest first; parameters and errors as `average_bias`.

    Equal ones come in the order of third class, near and far class. No labels.
    """
    known, distances, gate = _prepared(distance, form, None)
    best: list[Triplet] = []
    floor = 0.0
    for third, near, values in _values(distances, form, filtered, gate):
        # Each triplet once, from its closer class.
        closer = distances[third, near][:, None] < distances[third][None, :]
        once = np.where(closer, values, 0.0).ravel()
        picked = np.flatnonzero(once > floor)
        if len(picked) > most:
            picked = picked[np.argsort(-once[picked], kind="stable")[:most]]
        best += [
            Triplet(int(known[near[i // len(known)]]), int(known[i % len(known)]), int(known[third]), float(once[i]))
            for i in picked.tolist()
        ]
        best = sorted(best, key=lambda triplet: (-triplet.bias, triplet.third, triplet.near, triplet.far))[:most]
        floor = best[-1].bias if len(best) == most else 0.0
    return best


def third_classes(distance: NDArray[np.floating], first: int, second: int, filtered: bool = True) -> Floats:
    """Return the bias of a pair towards every third class by equation (3), float64 (classes,).

    Positive where the third class is closer to `first`; NaN for the two themselves and for undefined classes; 0 where
    `filtered` leaves a third class out that is far from both.
    """
    _, distances, _ = _prepared(distance, "equation", None)
    from_first, other = np.asarray(distance, np.float64)[[first, second]]
    total = from_first + other
    values: Floats = np.divide(other - from_first, total, out=np.zeros_like(total), where=total > 0)
    if filtered:
        values[np.minimum(from_first, other) > _cut(distances, "equation")] = 0.0
    values[np.isnan(total)] = np.nan
    values[[first, second]] = np.nan
    return values


def near_cutoff(distance: NDArray[np.floating], form: Form = "equation") -> float:
    """Return the distance from which on a third class counts as far: mean less one standard deviation."""
    check_form(form)
    return _cut(_prepared(distance, form, None)[1], form)


def _cut(found: Floats, form: Form) -> float:
    values = found.ravel() if form == "artefact" else found[np.triu_indices(len(found), 1)]
    return float(values.mean() - values.std())


def _values(found: Floats, form: Form, filtered: bool, gate: _Gate | None) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield a third class, the classes near it, and its bias between these (rows) and all classes (columns)."""
    cut = _cut(found, form) if filtered else np.inf
    for third, to in enumerate(found):
        close = to < cut if form == "artefact" else to <= cut
        close[third] = False
        near = np.flatnonzero(close).astype(np.int64)
        total = to[near, None] + to[None, :]
        if form == "artefact":
            counted = (to[near, None] > _SMALLEST) & (to[None, :] > _SMALLEST)
            if gate is not None:
                counted &= gate[third, near][:, None] | gate[third][None, :]
            share = np.divide(to[near, None], total, out=np.full_like(total, 0.5), where=counted)
            values = np.abs(share - 0.5)
        else:
            values = np.abs(to[near, None] - to[None, :])
            np.divide(values, total, out=values, where=total > 0)
        values[:, third] = 0.0
        yield third, near, values


def _prepared(
    distance: NDArray[np.floating], form: Form, directional: NDArray[np.floating] | None
) -> tuple[Ints, Floats, _Gate | None]:
    """Return the defined classes, their distances, and where labels show confusion."""
    check_form(form)
    whole = np.asarray(distance, np.float64)
    if whole.ndim != 2 or whole.shape[0] != whole.shape[1]:
        raise DataError(f"Expected a distance for every two classes, (classes, classes); found {whole.shape}.")
    known = np.flatnonzero(np.isfinite(np.diag(whole))).astype(np.int64)
    distances = whole[np.ix_(known, known)]
    if not (np.isfinite(distances).all() and (distances >= 0).all() and np.array_equal(distances, distances.T)):
        raise DataError("Expected symmetric distances of 0 or more; an undefined class has NaN throughout.")
    if len(known) < 3:
        raise DataError(
            f"Bias compares with third classes, so it needs three or more that are predicted; there are {len(known)}."
        )
    if directional is None:
        return known, distances, None
    if form == "equation":
        raise SettingError("The equations use no labels: leave `directional` out, or choose form='artefact'.")
    confused = np.nan_to_num(np.asarray(directional, np.float64)) > 0
    if confused.shape != whole.shape:
        raise DataError(f"Expected confusion of {len(whole)} classes; found {confused.shape}.")
    return known, distances, (confused | confused.T)[np.ix_(known, known)]
