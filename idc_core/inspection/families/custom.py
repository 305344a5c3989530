"""Hypotheses that a person gives: masks, attributes; and what other units or other networks do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.guarded import read_array, read_picture
from idc_core.inspection.hypothesis import Hypothesis, Kind, Records, places
from idc_core.inspection.single_records import unit_values
from idc_core.tracing.trace import trace


def attribute(name: str, values: NDArray[np.generic], dataset: Dataset) -> Hypothesis:
    """Return a hypothesis from a person's values, one per record or per place of each; a mask (*places,) holds for all.

    Raises DataError if the shape is none of these, or a value is not finite.
    """
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{name!r} must be a table of numbers, with rows of equal length ({error}).") from error
    own = places(dataset)
    if own and given.shape == own:
        given = np.broadcast_to(given, (len(dataset), *own))
    if given.shape not in ((len(dataset),), (len(dataset), *own)):
        raise DataError(
            f"{name!r} has the shape {given.shape}; expected {(len(dataset),)}, {(len(dataset), *own)} or a mask {own}."
        )
    if given.dtype.kind not in "biuf" or not np.isfinite(given).all():
        raise DataError(f"{name!r} must be true or false, or finite numbers; found {given.dtype}.")
    kind: Kind = "binary" if given.dtype == bool or set(np.unique(given).tolist()) <= {0, 1} else "number"
    return Hypothesis(name, "given", kind, lambda records: given[records.positions], recomputable=False)


def unit(model: nn.Module, layer: str, number: int, name: str | None = None) -> Hypothesis:
    """Return the hypothesis that units behave like one unit of a layer, of this or another network."""

    def behave(records: Records) -> NDArray[np.generic]:
        return unit_values(model, layer, number, records.inputs)

    return Hypothesis(name or f"unit {number} of {layer}", "units", "number", behave)


def predictions(model: nn.Module, class_names: tuple[str, ...], name: str) -> tuple[Hypothesis, ...]:
    """Return the hypotheses that units encode a network's prediction: one per class, and the class itself."""

    def answers(records: Records) -> NDArray[np.generic]:
        def make() -> NDArray[np.generic]:
            return np.concatenate([batch.scores.argmax(1).cpu().numpy() for batch in trace(model, records.inputs, [])])

        values: NDArray[np.generic] = records.once(("answers", id(model)), make)
        return values

    each = tuple(
        Hypothesis(f"{name} says {label}", "predictions", "binary", partial(_equal, answers, at))
        for at, label in enumerate(class_names)
    )
    return (*each, Hypothesis(f"{name} says", "predictions", "classes", answers, len(class_names)))


def _equal(answers: Callable[[Records], NDArray[np.generic]], at: int, records: Records) -> NDArray[np.generic]:
    return np.asarray(answers(records) == at)


_HALF = 128
"""From this grey of 0..255 a pixel of a picture belongs to the mask."""


def mask_hypothesis(name: str, content: bytes, dataset: Dataset) -> Hypothesis:
    """Return the hypothesis that a pixel lies in a mask, the same one for every record.

    `name` is the file's; its ending says whether `content` is a NumPy array (.npy, never unpickled) or a PNG picture
    whose light pixels are the mask. DataError if it cannot be read, or has another size.
    """
    own, where = places(dataset), f"The mask {name}"
    if len(own) != 2:
        raise DataError(f"{where} is for pictures; {dataset.name} has none.")
    if name.lower().endswith(".npy"):
        values = read_array(content, where, own)
    else:
        values = read_picture(content, where, "PNG", size=(own[1], own[0]), convert="L") >= _HALF
    return attribute(f"mask {name}", values, dataset)
