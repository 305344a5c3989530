"""The list of datasets, and the one function that loads them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from idc_core.datasets.dataset import Dataset, Items, Split, Task, content_fingerprint
from idc_core.errors import DataError
from idc_core.parameters import is_whole, shown
from idc_core.progress import Progress

Loader = Callable[[str, int | None, Progress | None], Items]
"""Called with (split, limit, on_progress); `split` and `limit` have been checked."""


@dataclass(frozen=True)
class DatasetEntry:
    """One row of the registry: what menus, command line and documentation show of a dataset.

    Attributes
    ----------
    name, label, help : str
        Short name, as given to `load_dataset`; name for a person; one sentence on what it is.
    task : {"classification", "regression"}
    class_names : tuple of str
        Names by class index; empty for regression.
    input_shape : tuple of int
        Shape of one input: (C, H, W) for images, (length,) for text.
    citation, licence : str
        The work to cite, and the terms its authors give.
    load : callable
        Reads one split: `(split, limit, on_progress) -> Items`.
    learns_from : int or None
        The dashboard learns neurons and clusters from the first so many training inputs, and says so; None for all.
    """

    name: str
    label: str
    help: str
    task: Task
    class_names: tuple[str, ...]
    input_shape: tuple[int, ...]
    citation: str
    licence: str
    load: Loader
    learns_from: int | None = None


DATASETS: dict[str, DatasetEntry] = {}
"""Every dataset by its name, in the order in which menus show them."""


def dataset(
    name: str,
    label: str = "",
    help: str = "",
    *,
    input_shape: tuple[int, ...],
    class_names: tuple[str, ...] = (),
    task: Task = "classification",
    citation: str = "",
    licence: str = "",
    learns_from: int | None = None,
) -> Callable[[Loader], Loader]:
    """Put the decorated reader into `DATASETS`; the parameters are the fields of `DatasetEntry`.

    >>> @dataset("my-photos", input_shape=(3, 32, 32), class_names=("cat", "dog"))
    ... def read(split, limit, on_progress):
    ...     return Items(inputs, targets)  # float32 (n, 3, 32, 32) in 0..1 and int64 (n,), the first `limit` of them

    Returns
    -------
    callable
        The decorator; it returns the reader unchanged.
    """

    def decorate(load: Loader) -> Loader:
        DATASETS[name] = DatasetEntry(
            name, label or name, help, task, class_names, input_shape, citation, licence, load, learns_from
        )
        return load

    return decorate


def load_dataset(
    name: str, split: Split = "test", limit: int | None = None, *, on_progress: Progress | None = None
) -> Dataset:
    """Load one split of a dataset.

    Files are looked for in the folder that the environment variable IDC_DATA names, then in the cache
    (IDC_HOME, or the platform's cache folder); what is in neither is downloaded into the cache.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.
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
    if name not in DATASETS:
        raise DataError(f"There is no dataset {shown(name)}; choose one of {', '.join(DATASETS)}.")
    if split not in get_args(Split):
        raise DataError(f"There is no split {split!r} of {name}; choose one of {', '.join(get_args(Split))}.")
    if limit is not None and not is_whole(limit, 1):
        raise DataError(
            f"The limit for {name} must be a whole number, 1 or more, or None for all items; got {shown(limit)}."
        )
    entry = DATASETS[name]
    items = entry.load(split, None if limit is None else int(limit), on_progress)
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
    )
