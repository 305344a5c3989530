"""A person's own tests as a suite: an npz file with inputs and targets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.datasets.dataset import Task
from idc_core.errors import DataError
from idc_core.npz import read_arrays
from idc_core.suites.suite import ProvenanceStep, Suite, SuitePart

if TYPE_CHECKING:
    from hashlib import _Hash as Hash


def custom_suite(file: Path | bytes | BinaryIO, like: Dataset | Suite, label: str = "Own tests") -> Suite:
    """Read a person's own tests, of no data set (`origin` is -1), from an npz file.

    ``numpy.savez(path, inputs=..., targets=...)`` writes it. ``inputs`` is (n, ...) in the shape of `like`: pictures as
    floats in 0..1, or as uint8 in 0..255, which are divided by 255; texts as token ids. ``targets`` is (n,): true
    classes, or true values of a regression. Raises DataError if the file is damaged, lacks an array, holds pickled
    objects or more than `idc_core.npz.MOST_BYTES`, or the arrays do not fit the data set. Nothing in it is ever
    executed.
    """
    where = str(file) if isinstance(file, Path) else "The file"
    arrays = read_arrays(file, where, ("inputs", "targets"))
    return suite_from_arrays(arrays["inputs"], arrays["targets"], SuiteFormat.of(like), label=label, where=where)


@dataclass(frozen=True)
class SuiteFormat:
    """What a network takes: shape of one input, class names (none for regression), and task."""

    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    task: Task

    @staticmethod
    def of(like: Dataset | Suite) -> SuiteFormat:
        """Return the format of a data set's tests, or of a suite's."""
        shape = like.shape if isinstance(like, Suite) else tuple(int(side) for side in like.inputs.shape[1:])
        return SuiteFormat(shape, tuple(like.class_names), like.task)


def suite_from_arrays(
    inputs: NDArray[Any],
    targets: NDArray[Any],
    form: SuiteFormat,
    *,
    label: str = "Own tests",
    name: str = "own",
    origin: NDArray[np.int64] | None = None,
    provenance: Sequence[ProvenanceStep] = (),
    where: str = "The tests",
) -> Suite:
    """Make a suite of arrays, as `custom_suite` takes them; raise `DataError` if they do not fit.

    `origin` is the number of the test that each was made of, default -1; `provenance` says how they were made, default
    that they are a person's own; `where` names what holds the arrays, for messages.
    """
    inputs = fitting_inputs(inputs, form.shape, where)
    targets = fitting_targets(targets, len(inputs), form, where)
    digest = begin_digest(inputs.dtype, inputs.shape)
    digest.update(inputs.data)
    digest.update(targets.data)
    fingerprint = digest.hexdigest()[:16]
    own = ProvenanceStep("own", f"{len(inputs):,} own tests", {"fingerprint": fingerprint})
    return Suite(
        name=name,
        label=label,
        targets=targets,
        origin=np.full(len(inputs), -1, np.int64) if origin is None else origin,
        shape=form.shape,
        class_names=form.class_names,
        task=form.task,
        provenance=tuple(provenance) or (own,),
        parts=(SuitePart.of(inputs, fingerprint),),
    )


def begin_digest(kind: np.dtype[Any], shape: tuple[int, ...]) -> Hash:
    """Begin the content address of tests: all inputs follow in order, then the targets."""
    return hashlib.sha256(repr((kind.str, shape)).encode())


def fitting_inputs(array: NDArray[Any], shape: tuple[int, ...], where: str) -> NDArray[Any]:
    """Return inputs as the network takes them, or refuse them with `DataError`."""
    if array.shape[1:] != shape or not len(array):
        wanted = ", ".join(map(str, shape))
        raise DataError(f"{where}: expected inputs of shape (n, {wanted}) with n at least 1, found {array.shape}.")
    if len(shape) == 1:
        if array.dtype.kind not in "iu" or array.min() < 0:
            raise DataError(f"{where}: expected inputs that are token ids, whole numbers from 0, not {array.dtype}.")
        return np.ascontiguousarray(array, np.int64)
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array, np.float32) / np.float32(255)
    if array.dtype.kind != "f":
        raise DataError(f"{where}: expected inputs as floats in 0..1 or as uint8 in 0..255, not {array.dtype}.")
    if not (array.min() >= 0 and array.max() <= 1):
        raise DataError(
            f"{where}: expected inputs in 0..1, but they reach from {array.min():.3g} to {array.max():.3g}; scale them "
            "as the network's training inputs were."
        )
    return np.ascontiguousarray(array, np.float32)


def fitting_targets(array: NDArray[Any], count: int, form: SuiteFormat, where: str) -> NDArray[Any]:
    """Return targets as the network predicts them, or refuse them with `DataError`."""
    if array.shape != (count,):
        raise DataError(f"{where}: expected one target for each of {count} inputs, found the shape {array.shape}.")
    if form.task == "regression":
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise DataError(f"{where}: expected targets that are finite numbers, not {array.dtype}.")
        return np.ascontiguousarray(array, np.float32)
    classes = len(form.class_names)
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= classes:
        found = f"{array.min()} to {array.max()}" if array.dtype.kind in "iu" else str(array.dtype)
        raise DataError(f"{where}: expected targets that are classes, whole numbers in 0..{classes - 1}, not {found}.")
    return np.ascontiguousarray(array, np.int64)
