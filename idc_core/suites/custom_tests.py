"""A person's own tests as a suite: an npz file with inputs and targets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Arrays
from idc_core.datasets import Dataset
from idc_core.datasets.dataset import Task
from idc_core.errors import DataError
from idc_core.guarded import File, open_arrays
from idc_core.suites.suite import ProvenanceStep, Suite, SuitePart, nowhere

if TYPE_CHECKING:
    from hashlib import _Hash as Hash


_SEEN = 256
"""Inputs whose values tell pictures in 0..1 from others of their shape."""
_Kind = Literal["pictures", "tokens", "numbers"]


def custom_suite(file: File, like: Dataset | Suite, label: str = "Own tests") -> Suite:
    """Read a person's own tests, of no data set (`origin` is -1), from an npz file.

    ``numpy.savez(path, inputs=..., targets=...)`` writes it. ``inputs`` is (n, ...) in the shape of `like`: pictures as
    floats in 0..1, or as uint8 in 0..255, which are divided by 255; texts as token ids; feature vectors and time series
    as numbers, scaled as the network's training inputs. ``targets`` is (n,): true
    classes, or true values of a regression. Raises DataError if the file is damaged, lacks an array, holds pickled
    objects, takes more memory than is allowed, or does not fit the data set. Nothing in it is ever executed.
    """
    where = str(file) if isinstance(file, Path) else "The file"
    form = SuiteFormat.of(like)
    inputs, targets, _ = read_tests(file, where, form)
    words = len(like.vocabulary) if isinstance(like, Dataset) and form.kind == "tokens" else 0
    if words and inputs.max() >= words:
        raise DataError(f"{where}: expected token ids in 0..{words - 1}, found {inputs.max()}.")
    return suite_from_arrays(inputs, targets, form, label=label, where=where)


def read_tests(file: File, where: str, form: SuiteFormat, others: Sequence[str] = ()) -> tuple[Array, Array, Arrays]:
    """Read inputs, targets, and those of other arrays that are there.

    Shapes and types are compared with `form` before anything is read.
    """
    with open_arrays(file, where) as arrays:
        arrays.require(("inputs", "targets"))
        header, targets = arrays.header("inputs"), arrays.header("targets")
        _check_form(header.shape, header.kind, form, where)
        if targets.shape != header.shape[:1]:
            raise DataError(
                f"{where}: expected one target for each of {header.shape[0]} inputs, found the shape {targets.shape}."
            )
        # Converted while they are read, so that no second copy is ever held.
        inputs = arrays.read("inputs", np.int64 if form.kind == "tokens" else np.float32)
        if header.kind == np.uint8 and form.kind == "pictures":
            inputs /= np.float32(255)
        return inputs, arrays.read("targets"), {name: arrays.read(name) for name in others if name in arrays.names}


@dataclass(frozen=True)
class SuiteFormat:
    """What a network takes: shape of one input, class names (none for regression), task, and what inputs are.

    `kind` is "pictures" with values in 0..1, "tokens", or "numbers" of any size: feature vectors and time series; by
    default what has the shape of pictures or tokens.
    """

    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    task: Task
    kind: _Kind | Literal[""] = ""

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "tokens" if len(self.shape) == 1 else "pictures")

    @staticmethod
    def of(like: Dataset | Suite) -> SuiteFormat:
        """Return the format of a data set's tests, or of a suite's."""
        if not isinstance(like, Suite):
            shape, kind = tuple(int(side) for side in like.inputs.shape[1:]), _kind_of(like.inputs)
        elif len(like.shape) == 3:
            shape, kind = like.shape, "pictures"  # of which the first one may have to be made by an attack
        else:
            shape, kind = like.shape, _kind_of(like.take([0]))
        return SuiteFormat(shape, tuple(like.class_names), like.task, kind)


def _kind_of(inputs: Array) -> _Kind:
    """Return what inputs (n, ...) of a data set are."""
    first = np.asarray(inputs[:_SEEN])
    if inputs.ndim == 4 and (not first.size or 0 <= first.min() <= first.max() <= 1):
        return "pictures"
    return "tokens" if inputs.dtype.kind in "iu" else "numbers"


def suite_from_arrays(
    inputs: Array,
    targets: Array,
    form: SuiteFormat,
    *,
    label: str = "Own tests",
    name: str = "own",
    origin: NDArray[np.int64] | None = None,
    partner: NDArray[np.int64] | None = None,
    provenance: Sequence[ProvenanceStep] = (),
    where: str = "The tests",
) -> Suite:
    """Make a suite of arrays, as `custom_suite` takes them; raise `DataError` if they do not fit.

    `origin` and `partner` are the numbers of the one or two tests that each was made of, default -1; `provenance` says
    how they were made, default that they are a person's own; `where` names what holds the arrays, for messages.
    """
    inputs = fitting_inputs(inputs, form, where)
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
        origin=nowhere(len(inputs)) if origin is None else origin,
        partner=nowhere(len(inputs)) if partner is None else partner,
        shape=form.shape,
        class_names=form.class_names,
        task=form.task,
        provenance=tuple(provenance) or (own,),
        parts=(SuitePart.of(inputs, fingerprint),),
    )


def begin_digest(kind: np.dtype[np.generic], shape: tuple[int, ...]) -> Hash:
    """Begin the content address of tests: all inputs follow in order, then the targets."""
    return hashlib.sha256(repr((kind.str, shape)).encode())


def fitting_inputs(array: Array, form: SuiteFormat, where: str) -> Array:
    """Return inputs as the network takes them, or refuse them with `DataError`."""
    _check_form(array.shape, array.dtype, form, where)
    if form.kind == "tokens":
        if array.min() < 0:
            raise DataError(f"{where}: expected token ids, whole numbers from 0, but found {array.min()}.")
        return np.ascontiguousarray(array, np.int64)
    if form.kind == "numbers":
        if not np.isfinite(array).all():
            raise DataError(f"{where}: expected inputs that are finite numbers.")
        return np.ascontiguousarray(array, np.float32)
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array, np.float32) / np.float32(255)
    if not (array.min() >= 0 and array.max() <= 1):
        raise DataError(
            f"{where}: expected inputs in 0..1, but they reach from {array.min():.3g} to {array.max():.3g}; scale them "
            "as the network's training inputs were."
        )
    return np.ascontiguousarray(array, np.float32)


def _check_form(found: tuple[int, ...], kind: np.dtype[np.generic], form: SuiteFormat, where: str) -> None:
    """Refuse inputs of another shape or type, before any of them is looked at."""
    shape = form.shape
    if found[1:] != shape or not found or not found[0]:
        expected = ", ".join(map(str, shape))
        raise DataError(f"{where}: expected inputs of shape (n, {expected}) with n at least 1, found {found}.")
    if form.kind == "numbers" and kind.kind not in "fiu":
        raise DataError(f"{where}: expected inputs that are numbers, not {kind}.")
    if form.kind == "tokens" and kind.kind not in "iu":
        raise DataError(f"{where}: expected inputs that are token ids, whole numbers from 0, not {kind}.")
    if form.kind == "pictures" and kind.kind != "f" and kind != np.uint8:
        raise DataError(f"{where}: expected inputs as floats in 0..1 or as uint8 in 0..255, not {kind}.")


def fitting_targets(array: Array, count: int, form: SuiteFormat, where: str) -> Array:
    """Return targets as the network predicts them, or refuse them with `DataError`."""
    if array.shape != (count,):
        raise DataError(f"{where}: expected one target for each of {count} inputs, found the shape {array.shape}.")
    if form.task == "regression":
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise DataError(f"{where}: expected targets that are finite numbers, not {array.dtype}.")
        return np.ascontiguousarray(array, np.float32)
    classes = len(form.class_names)
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= classes:
        values = f"{array.min()} to {array.max()}" if array.dtype.kind in "iu" else str(array.dtype)
        raise DataError(f"{where}: expected targets that are classes, whole numbers in 0..{classes - 1}, not {values}.")
    return np.ascontiguousarray(array, np.int64)
