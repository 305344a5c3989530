"""Arrays of a person's own data: made float32, token ids or class numbers, or refused in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.dataset import Task
from idc_core.datasets.streamed import StreamedInputs
from idc_core.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

_CHANNELS = (1, 3)
_SLACK = 1e-6


def as_array(given: object) -> NDArray[np.generic]:
    """Return a tensor, a picture (channels first), a table or a list as an array."""
    if hasattr(given, "detach"):
        tensor: Tensor = given.detach().cpu()
        return np.asarray(tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy())
    array = np.asarray(given)
    if hasattr(given, "getbands"):  # a picture of Pillow: rows, columns, then channels
        return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)
    return array


def checked_inputs(given: NDArray[np.generic], where: str) -> NDArray[np.generic]:
    """Return inputs as the engine takes them.

    Parameters
    ----------
    given : ndarray (n, ...)
        Pictures (n, C, H, W), uint8 or float; token ids (n, length), whole numbers from 0; or float vectors, sequences
        and volumes. Bytes become 0..1, floats stay as they are.
    where : str
        What they are, for messages.

    Returns
    -------
    ndarray, float32 or int64
        C-contiguous.

    Raises
    ------
    DataError
        If they are anything else.
    """
    if isinstance(given, StreamedInputs):
        return given
    if given.dtype.kind not in "fiub" or given.ndim < 2:
        raise DataError(
            f"{where} has inputs of type {given.dtype} and shape {given.shape}; expected numbers with one row per "
            "input: pictures (n, C, H, W), token ids (n, length) or feature vectors (n, features)."
        )
    if given.ndim == 4 and given.shape[1] not in _CHANNELS and given.shape[3] in _CHANNELS:
        raise DataError(
            f"{where} has pictures of shape {given.shape[1:]}, channels last; expected (C, H, W): "
            "use inputs.transpose(0, 3, 1, 2)."
        )
    if given.dtype.kind in "iu" and given.ndim == 2:
        if given.size and given.min() < 0:
            raise DataError(f"{where} has token ids from {given.min()}; expected whole numbers from 0 (padding).")
        return np.ascontiguousarray(given, np.int64)
    if given.dtype == np.uint8:
        return np.ascontiguousarray(given, np.float32) / np.float32(255)
    if given.dtype.kind in "iu":
        raise DataError(
            f"{where} has inputs of type {given.dtype} and shape {given.shape}; expected pictures as uint8, which are "
            "divided by 255, or as floats."
        )
    values = np.ascontiguousarray(given, np.float32)
    whole = np.isfinite(values)
    if not whole.all():
        number = int(np.flatnonzero(~whole.reshape(len(values), -1).all(1))[0])
        raise DataError(f"{where} has values that are not finite, first in input {number}; expected numbers.")
    return _rounded(values) if values.ndim == 4 and values.size else values


def _rounded(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return pictures whose values leave 0..1 by rounding alone within it; others are what a person gave."""
    low, high = float(pictures.min()), float(pictures.max())
    beyond = -_SLACK <= low <= high <= 1 + _SLACK and (low < 0 or high > 1)
    return np.clip(pictures, 0, 1) if beyond else pictures


def checked_targets(
    given: NDArray[np.generic], where: str, task: Task | None, class_names: tuple[str, ...]
) -> NDArray[np.int64] | NDArray[np.float32]:
    """Return targets as class numbers, int64 (n,), or as numbers of a regression, float32 (n,).

    `task` and `class_names` are what is known of the data set, None and empty where the targets tell. Raises DataError,
    which begins with `where`.
    """
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim == 2 and given.dtype.kind in "biuf" and np.isin(given, (0, 1)).all() and (given.sum(1) != 1).any():
        raise DataError(
            f"{where} has targets of several labels, shape {given.shape}, which are not analysed; expected one per "
            "input, (n,): return one label alone, targets[:, 0]."
        )
    if given.ndim != 1:
        raise DataError(
            f"{where} has targets of shape {given.shape}; expected one per input, (n,). One-hot classes: use "
            "targets.argmax(1)."
        )
    if given.dtype.kind in "OUS":
        return _named(given, where, class_names)
    if given.dtype.kind not in "fiub":
        raise DataError(f"{where} has targets of type {given.dtype}; expected class numbers, class names or numbers.")
    if not np.isfinite(given).all():
        raise DataError(f"{where} has targets that are not finite; expected numbers.")
    whole = given.dtype.kind in "iub" or (task == "classification" and bool((given == np.floor(given)).all()))
    if task == "regression" or (task is None and not whole):
        return np.ascontiguousarray(given, np.float32)
    if not whole:
        raise DataError(f"{where} has targets of type {given.dtype}; expected whole numbers, one class each.")
    classes = np.ascontiguousarray(given, np.int64)
    most = len(class_names) - 1
    if classes.size and (classes.min() < 0 or (class_names and classes.max() > most)):
        expected = f"0 to {most}, the classes {', '.join(class_names)}" if class_names else "from 0"
        raise DataError(f"{where} has classes {classes.min()} to {classes.max()}; expected {expected}.")
    return classes


def _named(given: NDArray[np.generic], where: str, class_names: tuple[str, ...]) -> NDArray[np.int64]:
    numbers = {name: number for number, name in enumerate(class_names)}
    unknown = sorted({str(name) for name in given} - set(numbers))
    if unknown:
        raise DataError(
            f"{where} has the target {unknown[0]!r}; expected class numbers, or names given as class_names=(...) "
            f"({', '.join(class_names) or 'none are given'})."
        )
    return np.array([numbers[str(name)] for name in given], np.int64)
