"""The list of datasets, and the one function that loads them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import numpy as np

from idc_core.base.own_code import free_name, looks_like_path
from idc_core.base.parameters import is_whole, shown
from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Dataset, Split, Task, content_fingerprint
from idc_core.datasets.entry import DatasetEntry, Loader, Quantity
from idc_core.datasets.own import DataFile, OwnData, OwnReader
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.remote import local_path
from idc_core.errors import DataError

_Read = TypeVar("_Read", bound=Callable[..., object])

DATASETS: dict[str, DatasetEntry] = {}
"""Every dataset by its name, in the order in which menus show them."""


def shipped(
    name: str,
    label: str,
    help: str,
    *,
    input_shape: tuple[int, ...],
    class_names: tuple[str, ...] = (),
    task: Task = "classification",
    citation: str = "",
    licence: str = "",
    learns_from: int | None = None,
    quantity: Quantity = Quantity(),  # noqa: B008 (frozen)
) -> Callable[[Loader], Loader]:
    """Put a data set of the project into `DATASETS`: its reader is trusted, and nothing that it read is kept.

    The parameters are the fields of `DatasetEntry`. Returns the decorator; it returns the reader unchanged.
    """

    def decorate(load: Loader) -> Loader:
        DATASETS[name] = DatasetEntry(
            name, label, help, task, class_names, input_shape, citation, licence, load, learns_from, quantity
        )
        return load

    return decorate


def dataset(
    name: str,
    label: str = "",
    help: str = "",
    *,
    input_shape: tuple[int, ...] = (),
    class_names: Sequence[str] = (),
    task: Task | None = None,
    citation: str = "",
    licence: str = "",
    learns_from: int | None = None,
) -> Callable[[_Read], _Read]:
    """Put a data set into `DATASETS` that the decorated function reads.

    >>> @dataset("my-photos", class_names=("cat", "dog"))
    ... def read(split):  # "train" or "test"
    ...     return inputs, targets  # uint8, or float in 0..1, (n, 3, 32, 32), and class numbers (n,)

    The function may take (split, limit) or (split, limit, on_progress) instead, and may return a torch Dataset whose
    items are (input, target), a `Dataset` or `Items`. Inputs are pictures (n, C, H, W), token ids (n, length), whole
    numbers from 0, or float vectors (n, features). For a network with several inputs they are a mapping from the names
    of its forward's parameters to arrays, the main one first; the others must follow from it: see
    `idc_core.datasets.naming`.

    Parameters
    ----------
    name, label, help : str
        Name for commands and addresses, name for people (default: the same), and one sentence on what it is.
    input_shape : tuple of int
        Shape of one input; default: told by the first one.
    class_names : sequence of str
        Names by class index; default: those that a torch Dataset has, else "0" to the highest class.
    task : {"classification", "regression"}, optional
        Default: classification where the targets are whole numbers.
    citation, licence : str
    learns_from : int, optional
        As in `DatasetEntry`.

    Returns
    -------
    callable
        The decorator; it returns the function unchanged.
    """

    def decorate(read: _Read) -> _Read:
        names = tuple(str(class_name) for class_name in class_names)
        known: Task | None = task or ("classification" if names else None)
        reader = OwnReader(name, read, known, names)
        DATASETS[name] = OwnData(
            name=name,
            label=label or name,
            help=help,
            task=cast("Task", known),
            class_names=names,
            input_shape=tuple(input_shape),
            citation=citation,
            licence=licence,
            load=reader,
            learns_from=learns_from,
        )
        return read

    return decorate


def open_data(
    path: Path | str,
    *,
    name: str = "",
    label: str = "",
    preparation: Preparation | None = None,
    on_progress: Progress | None = None,
    **known: Any,
) -> OwnData:
    """Enter a file or folder into `DATASETS`, in place of what was opened from it before.

    `path` has an ending of `DATA_FORMATS`, or is a folder, or the URL of either, as `local_path` takes it. `name` and
    `label` are by default after the file. `preparation` says how it becomes inputs, by default as the files tell. Of
    `input_shape`, `task` and `class_names` what is `known` already is not read from it.

    Raises
    ------
    DataError
        If it cannot be read as data, or a URL cannot be fetched.
    """
    whole = local_path(path, on_progress)
    read = DataFile(whole, preparation or Preparation())
    name = name or free_name(whole, DATASETS)
    load = OwnReader(name, read, None, ())
    entry = OwnData(name=name, label=label or name, help=f"Read from {whole.name}.", load=load, **known)
    _ = entry.input_shape, entry.task  # what cannot be read is nothing that others may come upon
    DATASETS[name] = entry
    return entry


def load_dataset(
    name: str, split: Split = "test", limit: int | None = None, *, on_progress: Progress | None = None
) -> Dataset:
    """Load one split of a dataset.

    Files are looked for in the folder that the environment variable IDC_DATA names, then in the cache
    (IDC_HOME, or the platform's cache folder); what is in neither is downloaded into the cache.

    Parameters
    ----------
    name : str
        A key of `DATASETS`, or the path or URL of a file or folder, which `open_data` enters.
    split : {"test", "train"}
        Which split.
    limit : int, optional
        Keep only the first `limit` items of the split's own order; None, or more than there are, keeps all.
    on_progress : Progress, optional
        Called with (done, total, label); returning False stops the work.

    Returns
    -------
    Dataset
        Inputs and targets are not writeable.

    Raises
    ------
    DataError
        If the name, the split or the limit is not valid, if the files are neither there nor to be had, or if
        they are damaged.
    CancelledError
        If `on_progress` returned False.
    """
    if not isinstance(name, str) or name not in DATASETS:
        if not isinstance(name, str) or not looks_like_path(name):
            raise DataError(f"There is no dataset {shown(name)}; choose one of {', '.join(DATASETS)}.")
        name = open_data(name, on_progress=on_progress).name
    if not isinstance(split, str) or split not in get_args(Split):
        raise DataError(f"There is no split {shown(split)} of {name}; choose one of {', '.join(get_args(Split))}.")
    if limit is not None and not is_whole(limit, 1):
        raise DataError(
            f"The limit for {name} must be a whole number, 1 or more, or None for all items; got {shown(limit)}."
        )
    most = None if limit is None else int(limit)
    entry = DATASETS[name]
    items = entry.load(split, most, on_progress)
    ids = np.arange(len(items.targets), dtype=np.int64)
    for array in (items.inputs, items.targets, ids):
        array.setflags(write=False)
    return Dataset(
        name=name,
        split=split,
        inputs=items.inputs,
        targets=items.targets,
        class_names=entry.class_names,
        task=entry.task,
        vocabulary=items.vocabulary,
        texts=items.texts,
        ids=ids,
        fingerprint=content_fingerprint(items, entry.class_names),
        notes=items.notes,
        special=items.special,
        naming=items.naming,
    )
