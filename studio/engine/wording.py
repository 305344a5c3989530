"""Inputs that are no pictures, and targets that are no classes, as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from studio.text import signed

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.datasets.entry import Quantity


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
    if test.inputs.ndim == 4:
        return "pictures"
    return "feature vectors" if test.inputs.dtype.kind == "f" else "texts"


def input_parts(test: Dataset) -> str:
    """Name what an input that is no picture consists of."""
    if test.inputs.dtype.kind == "f":
        return "features"
    return "characters" if test.is_spelt else "words"


def features(test: Dataset, values: NDArray[Any]) -> list[str]:
    """Write the values of a feature vector, each with its name, where the data set names them, or its number."""
    flat = values.reshape(-1)
    names = test.vocabulary if len(test.vocabulary) == len(flat) else [f"x{number}" for number in range(len(flat))]
    return [f"{name} = {value:.3g}" for name, value in zip(names, flat, strict=True)]
