"""Arrays of NumPy: an npz file, or npy files beside each other."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.files.contents import Content, Part, items_of
from idc_core.datasets.files.names import listed
from idc_core.datasets.formats import data_format
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.splits import named_split
from idc_core.errors import DataError
from idc_core.guarded import Budget, open_arrays, read_array

_INPUTS = ("x", "inputs", "input", "images", "image", "data", "features", "texts", "text")
_TARGETS = ("y", "targets", "target", "labels", "label")
_CLASS_NAMES = ("class_names", "classes", "label_names", "target_names")
_VOCABULARY = ("feature_names", "vocabulary", "columns")

_Read = Callable[[], NDArray[np.generic]]


@data_format(".npz", label="NumPy arrays")
def _read_npz(
    path: Path, preparation: Preparation, split: str, limit: int | None, on_progress: Progress | None
) -> Items:
    """Read inputs and targets of one file, such as x_train, y_train, x_test and y_test."""
    with open_arrays(path, str(path)) as arrays:
        readers = {name: partial(arrays.read, name) for name in arrays.names}
        return items_of(_content_of(readers, arrays.budget, preparation, str(path)), preparation, split, str(path))


@data_format(".npy", label="NumPy array, with its labels beside it")
def _read_npy(
    path: Path, preparation: Preparation, split: str, limit: int | None, on_progress: Progress | None
) -> Items:
    """Read an array and those in the same folder that belong to it: x.npy and y.npy, or x_train.npy and so on."""
    if not any(other != path for other in path.parent.glob("*.npy")):
        raise DataError(
            f"{path} is one array alone: its targets must lie beside it, as x.npy and y.npy. Or save both in one file: "
            'numpy.savez("data.npz", x=inputs, y=targets).'
        )
    return read_npy_folder(path.parent, preparation, split)


def read_npy_folder(folder: Path, preparation: Preparation, split: str) -> Items:
    """Read inputs and targets that are npy files of a folder."""
    where, budget = str(folder), Budget(str(folder))
    readers = {file.stem: partial(read_array, file, str(file), budget=budget) for file in sorted(folder.glob("*.npy"))}
    return items_of(_content_of(readers, budget, preparation, where), preparation, split, where)


def _content_of(readers: Mapping[str, _Read], budget: Budget, preparation: Preparation, where: str) -> Content:
    """Find out which arrays are inputs and targets of which split, by their names, and read them.

    Parameters
    ----------
    readers : mapping of str to callable
        Reads the array of that name.
    budget : Budget
        What is read counts here.
    preparation : Preparation
        Its `inputs` and `targets` are names of arrays, with or without the name of a split.
    where : str
        What is read, for messages: the beginning of a sentence.

    Raises
    ------
    DataError
        If the names do not tell it.
    """
    for option, name in (("inputs", preparation.inputs), ("targets", preparation.targets)):
        if name and all(name not in (held, named_split(held)[1]) for held in readers):
            raise DataError(
                f"{where} has no array {name[:60]!a}, which --{option} names; its arrays are {listed(list(readers))}."
            )
    inputs = _by_split(readers, preparation.inputs, _INPUTS, where)
    targets = _by_split(readers, preparation.targets, _TARGETS, where)
    if not inputs or set(inputs) != set(targets):
        raise DataError(
            f"{where} holds the arrays {listed(list(readers))}; expected inputs and targets under names such as x and "
            f"y, or x_train, y_train, x_test and y_test. Or say which arrays are inputs and targets{_line(readers)}."
        )
    if "test" in inputs:
        inputs.pop("validation", None)
    parts = {split: Part(readers[name](), readers[targets[split]]()) for split, name in inputs.items()}
    words, classes = (_names(readers, names, where) for names in (_VOCABULARY, _CLASS_NAMES))
    note = f"inputs: {', '.join(inputs.values())}; targets: {', '.join(targets[split] for split in inputs)}"
    return Content(parts, budget, words, classes, (note,))


def _line(readers: Mapping[str, _Read]) -> str:
    """Return the options for two arrays under other names: the larger one holds the inputs."""
    if len(readers) != 2:
        return " by --inputs and --targets"
    small, large = sorted(readers, key=lambda name: readers[name]().size)
    return f", such as --inputs {shlex.quote(large)} --targets {shlex.quote(small)}"


def _by_split(names: Mapping[str, object], given: str, known: tuple[str, ...], where: str) -> dict[str, str]:
    """Return the name of the array of each split, of those that are called as was given, or else as usual."""
    by_split: dict[str, str] = {}
    for name in names:
        split, word = named_split(name)
        if given not in (name, word) if given else word.lower() not in known:
            continue
        split = "" if name == given else split
        if split in by_split:
            raise DataError(
                f"{where} holds {by_split[split]} and {name}, which may both be meant: say which one it is."
            )
        by_split[split] = name
    if "" in by_split and "test" in by_split and "train" not in by_split:
        by_split = {"train": by_split.pop(""), **by_split}
    return by_split


def _names(readers: Mapping[str, _Read], known: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return the names of classes or features that are kept beside the arrays, or nothing."""
    name = next((candidate for candidate in known if candidate in readers), None)
    if name is None:
        return ()
    array = readers[name]()
    if array.ndim != 1 or array.dtype.kind != "U" or len(set(array.tolist())) < len(array):
        raise DataError(f"{where}: expected different names in {name}, as text (n,), not {array.dtype} {array.shape}.")
    return tuple(array.tolist())
