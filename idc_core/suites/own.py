"""A person's own tests as a suite: an npz file with inputs and targets."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.progress import Progress
from idc_core.suites.suite import Part, Positions, Step, Suite

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
    shape = like.shape if isinstance(like, Suite) else tuple(like.inputs.shape[1:])
    where = str(file) if isinstance(file, Path) else "The file"
    arrays = _read(file, where)
    inputs = _inputs(arrays["inputs"], shape, where)
    targets = _targets(arrays["targets"], len(inputs), like, where)
    digest = hashlib.sha256(repr((inputs.dtype.str, inputs.shape)).encode())
    digest.update(inputs.data)
    digest.update(targets.data)
    fingerprint = digest.hexdigest()[:16]

    def make(positions: Positions, on_progress: Progress | None) -> NDArray[Any]:
        return np.asarray(inputs[positions])

    return Suite(
        name="own",
        label=label,
        targets=targets,
        origin=np.full(len(inputs), -1, np.int64),
        shape=shape,
        class_names=like.class_names,
        task=like.task,
        provenance=(Step("own", f"{len(inputs):,} own tests", {"fingerprint": fingerprint}),),
        parts=(Part(fingerprint, len(inputs), make),),
    )


def _read(file: Path | bytes | BinaryIO, where: str) -> dict[str, NDArray[Any]]:
    """Return the two arrays; their size is known from their headers before anything is read."""
    source = io.BytesIO(file) if isinstance(file, bytes) else file
    try:
        with zipfile.ZipFile(source) as archive:
            names = archive.namelist()
            missing = [name for name in ("inputs", "targets") if f"{name}.npy" not in names]
            if missing:
                found = ", ".join(name.removesuffix(".npy") for name in names) or "nothing"
                raise DataError(
                    f"{where} lacks {' and '.join(missing)}: expected an npz file with the arrays inputs and targets, "
                    f"found {found}."
                )
            return {name: _array(archive, name, where) for name in ("inputs", "targets")}
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


def _inputs(array: NDArray[Any], shape: tuple[int, ...], where: str) -> NDArray[Any]:
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


def _targets(array: NDArray[Any], count: int, like: Dataset | Suite, where: str) -> NDArray[Any]:
    if array.shape != (count,):
        raise DataError(f"{where}: expected one target for each of {count} inputs, found the shape {array.shape}.")
    if like.task == "regression":
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise DataError(f"{where}: expected targets that are finite numbers, not {array.dtype}.")
        return np.ascontiguousarray(array, np.float32)
    classes = len(like.class_names)
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= classes:
        found = f"{array.min()} to {array.max()}" if array.dtype.kind in "iu" else str(array.dtype)
        raise DataError(f"{where}: expected targets that are classes, whole numbers in 0..{classes - 1}, not {found}.")
    return np.ascontiguousarray(array, np.int64)
