"""Inputs that are no pictures, and targets that are no classes, as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.figures.wording import readable_pieces, signed

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.datasets.entry import Quantity

_GLUE = {"characters": "", "tokens": "", "words": " ", "features": ", ", "steps": ", "}


def quantity(test: Dataset) -> Quantity:
    """Return what the targets of a regression are."""
    from idc_core.datasets import DATASETS

    return DATASETS[test.name].quantity


def amount(test: Dataset, value: float, digits: str = "", unit: bool = True) -> str:
    """Write a target or a prediction of a regression, or a difference of them, with its unit."""
    what = quantity(test)
    number = signed(value, digits or "+.2f") if what.signed else f"{value:.4g}"
    return f"{number} {what.unit}".rstrip() if unit else number


def kind(test: Dataset) -> str:
    """Name what inputs are, in the plural."""
    if test.inputs.ndim >= 4:
        return "pictures" if test.inputs.ndim == 4 else "videos or volumes"
    if is_series(test):
        return "time series"
    return "feature vectors" if test.inputs.dtype.kind == "f" else "texts"


def is_series(test: Dataset) -> bool:
    """Whether inputs are time series (channels, steps)."""
    return test.inputs.ndim == 3 and test.inputs.dtype.kind == "f"


def input_parts(test: Dataset) -> str:
    """Name what an input consists of."""
    if test.inputs.ndim >= 4:
        return "pixels"
    if is_series(test):
        return "steps"
    if test.inputs.dtype.kind == "f":
        return "features"
    if test.is_spelt:
        return "characters"
    return "tokens" if test.is_pieces else "words"


def feature_names(test: Dataset) -> list[str]:
    """Return the names of the features, as the data set has them, or their numbers."""
    size = test.inputs[0].size
    return list(test.vocabulary) if len(test.vocabulary) == size else [f"x{number}" for number in range(size)]


def features(test: Dataset, values: NDArray[np.generic]) -> list[str]:
    """Write the values of a feature vector, each with its name or number."""
    return [f"{name} = {value:.3g}" for name, value in zip(feature_names(test), values.reshape(-1), strict=True)]


def words_of(test: Dataset, values: NDArray[np.generic]) -> list[str]:
    """Return the words or characters of a text, three dots for each that the network does not know; or features."""
    if is_series(test):
        return [f"{value:.3g}" for value in values.reshape(-1)]
    if values.dtype.kind == "f":
        return features(test, values)
    words = test.words(values[values != test.padding])
    return readable_pieces(words) if test.is_pieces else words


def glue(test: Dataset) -> str:
    """Return what stands between two words, or between two characters where a text is read by them."""
    return _GLUE[input_parts(test)]
