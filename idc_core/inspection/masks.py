"""A mask of places that a person gives as a file, as a hypothesis."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.inspection.families import attribute
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.records import places

HALF = 128
"""From this grey of 0..255 a pixel of a picture belongs to the mask."""


def mask_hypothesis(name: str, content: bytes, dataset: Dataset) -> Hypothesis:
    """Return the hypothesis that a pixel lies in a mask, the same one for every record.

    Parameters
    ----------
    name : str
        The file's name; its ending says what it is.
    content : bytes
        A NumPy array of the records' height and width, never unpickled, or a PNG whose light pixels are the mask.
    dataset : Dataset

    Raises
    ------
    DataError
        If the file cannot be read, or has another size.
    """
    values = _array(name, content) if name.lower().endswith(".npy") else _picture(name, content)
    if values.shape != places(dataset):
        raise DataError(
            f"The mask {name} has the shape {values.shape}; expected {places(dataset)}, the height and width of "
            f"{dataset.name}."
        )
    return attribute(f"mask {name}", values, dataset)


def _array(name: str, content: bytes) -> NDArray[np.generic]:
    try:
        found: NDArray[np.generic] = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{name} is no NumPy array ({error}); save one with numpy.save.") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{name} holds several arrays; save a single one with numpy.save.")
    return found


def _picture(name: str, content: bytes) -> NDArray[np.bool_]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
            return np.asarray(picture.convert("L")) >= HALF
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{name} cannot be read as a PNG picture ({error}).") from error
