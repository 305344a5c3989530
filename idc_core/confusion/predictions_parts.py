"""What npz files and tables of predictions share: bounds of their classes, scaling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.evidence import Evidence, check_count
from idc_core.datasets.files.names import check_names
from idc_core.errors import DataError
from idc_core.guarded import Budget

SEVERAL_BYTES = 18
"""What an input takes per class where it may have several: labels and predictions are compared as float64."""

# Tables of every two classes, and of every class and neuron, that finding errors holds at a time.
_SQUARES, _COUNTS = 12, 4


def check_size(classes: int, neurons: int, budget: Budget) -> None:
    """Refuse more classes than are compared, or than there is memory for: before anything of their size is made."""
    check_count(classes, budget.where)
    size = 8 * classes * (_SQUARES * classes + _COUNTS * neurons)
    budget.take(size, f"comparing {classes:,} classes by {neurons:,} neurons")
    budget.give(size)


def evidence_of(
    where: str,
    names: Sequence[str],
    labels: dict[str, NDArray[np.generic]],
    *,
    values: NDArray[np.floating] | None = None,
    probability: NDArray[np.floating] | None = None,
    notes: tuple[str, ...] = (),
) -> Evidence:
    """Return the evidence of a file; what does not fit is refused by the file's name."""
    check_names(names, "class name", where)
    try:
        return Evidence(tuple(names), labels.get("predicted"), labels.get("true"), values, probability, notes=notes)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def scaled_over_layers(
    values: NDArray[np.floating], sizes: Sequence[int], scaled: bool, where: str
) -> NDArray[np.floating]:
    """Scale each input's activations to 0..1 over its layer, in place, unless they are; a constant layer becomes zeros.

    `sizes` are the numbers of neurons of the layers, which together are all columns.
    """
    low, high = values.min(), values.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise DataError(f"{where}: some activations are not finite numbers.")
    if scaled:
        if low < 0 or high > 1:
            raise DataError(
                f"{where}: activations that are scaled already lie in 0..1, but these reach from {low:.3g} to "
                f"{high:.3g}."
            )
        return values
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low):
            raise DataError(
                f"{where}: activations reach from {low:.3g} to {high:.3g}, too far apart for {values.dtype}; expected "
                "those of a network."
            )
    start = 0
    for size in sizes:
        part = values[:, start : start + size]
        start += size
        lowest, highest = part.min(1, keepdims=True), part.max(1, keepdims=True)
        part -= lowest
        np.divide(part, highest - lowest, out=part, where=highest > lowest)
    return values
