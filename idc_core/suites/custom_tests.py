"""A person's own tests as a suite: an npz file with inputs and targets."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.datasets.dataset import Task
from idc_core.errors import DataError
from idc_core.suites.suite import Part, Step, Suite

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

MOST_BYTES = 2 << 30
"""Numbers that a file may hold, in bytes once read."""


def own_suite(file: Path | bytes | BinaryIO, like: Dataset | Suite, label: str = "Own tests") -> Suite:
    """Read a person's own tests.

    Parameters
    ----------
    file : Path, bytes or binary file
        An npz file, as ``numpy.savez(path, inputs=..., targets=...)`` writes it. ``inputs`` is (n, ...) in the shape
        of the data set's: pictures as floats in 0..1, or as uint8 in 0..255, which are divided by 255; texts as token
        ids. ``targets`` is (n,): right classes, or right values of a regression.
    like : Dataset or Suite
        What the network's tests look like.
    label : str

    Returns
    -------
    Suite
        Of no data set: `origin` is -1.

    Raises
    ------
    DataError
        If the file is damaged, lacks an array, holds pickled objects or more than `MOST_BYTES`, or the arrays do not
        fit the data set. Nothing in it is ever executed.
    """
    where = str(file) if isinstance(file, Path) else "The file"
    arrays = read_arrays(file, ("inputs", "targets"), where)
    return suite_of(arrays["inputs"], arrays["targets"], Form.of(like), label=label, where=where)


@dataclass(frozen=True)
class Form:
    """What tests must look like so that a network takes them.

    Attributes
    ----------
    shape : tuple of int
        Shape of one input.
    class_names : tuple of str
        Empty for regression.
    task : {"classification", "regression"}
    """

    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    task: Task

    @staticmethod
    def of(like: Dataset | Suite) -> Form:
        """Return the form of a data set's tests, or of a suite's."""
        shape = like.shape if isinstance(like, Suite) else tuple(int(side) for side in like.inputs.shape[1:])
        return Form(shape, tuple(like.class_names), like.task)


def suite_of(
    inputs: NDArray[Any],
    targets: NDArray[Any],
    form: Form,
    *,
    label: str = "Own tests",
    name: str = "own",
    origin: NDArray[np.int64] | None = None,
    provenance: Sequence[Step] = (),
    where: str = "The tests",
) -> Suite:
    """Make a suite of arrays.

    Parameters
    ----------
    inputs, targets : ndarray
        As in `own_suite`.
    form : Form
        What they must look like.
    label, name : str
        Of the suite.
    origin : ndarray, int64 (n,), optional
        Number of the test that each was made of; default -1.
    provenance : sequence of Step
        How they came to be; default: that they are a person's own.
    where : str
        What holds the arrays, for messages.

    Returns
    -------
    Suite

    Raises
    ------
    DataError
        If the arrays do not fit.
    """
    inputs = fitting_inputs(inputs, form.shape, where)
    targets = fitting_targets(targets, len(inputs), form, where)
    digest = begin_digest(inputs.dtype, inputs.shape)
    digest.update(inputs.data)
    digest.update(targets.data)
    fingerprint = digest.hexdigest()[:16]

    return Suite(
        name=name,
        label=label,
        targets=targets,
        origin=np.full(len(inputs), -1, np.int64) if origin is None else origin,
        shape=form.shape,
        class_names=form.class_names,
        task=form.task,
        provenance=tuple(provenance) or (Step("own", f"{len(inputs):,} own tests", {"fingerprint": fingerprint}),),
        parts=(Part.of(inputs, fingerprint),),
    )


def begin_digest(kind: np.dtype[Any], shape: tuple[int, ...]) -> Hash:
    """Begin the content address of tests: all inputs follow in order, then the targets."""
    return hashlib.sha256(repr((kind.str, shape)).encode())


def read_arrays(file: Path | bytes | BinaryIO, wanted: Sequence[str], where: str) -> dict[str, NDArray[Any]]:
    """Return arrays of an npz file; their size is known from their headers before anything is read.

    Raises
    ------
    DataError
        If it is no such file, lacks an array, holds pickled objects, or is too large.
    """
    source = io.BytesIO(file) if isinstance(file, bytes) else file
    try:
        with zipfile.ZipFile(source) as archive:
            names = archive.namelist()
            missing = [name for name in wanted if f"{name}.npy" not in names]
            if missing:
                found = ", ".join(name.removesuffix(".npy") for name in names) or "nothing"
                raise DataError(
                    f"{where} lacks {' and '.join(missing)}: expected an npz file with the arrays "
                    f"{' and '.join(wanted)}, found {found}."
                )
            return {name: _array(archive, name, where) for name in wanted}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{where} is no npz file, or is damaged ({error}): write it again with numpy.savez.") from error


def _array(archive: zipfile.ZipFile, name: str, where: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, kind = read(stream)
        if kind.hasobject:
            raise DataError(f"{where}: {name} holds Python objects, which are not read; expected an array of numbers.")
        size = math.prod(shape) * kind.itemsize
        if size > MOST_BYTES:
            raise DataError(f"{where}: {name} holds {size:,} bytes; at most {MOST_BYTES:,} are read.")
        content = stream.read(size)
    if len(content) != size:
        raise DataError(f"{where}: {name} ends early, after {len(content):,} of {size:,} bytes; write it again.")
    array: NDArray[Any] = np.frombuffer(content, kind)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


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


def fitting_targets(array: NDArray[Any], count: int, form: Form, where: str) -> NDArray[Any]:
    """Return right answers as the network gives them, or refuse them with `DataError`."""
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
